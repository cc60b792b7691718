"""One module a schema; every struct carries a version and is encoded by `shared.codec` alone."""
