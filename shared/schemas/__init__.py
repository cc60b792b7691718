"""One module per schema; every struct has a version and only `shared.codec` encodes it."""
