"""State in the operator's hands: savepoints, reset, skipped and replayed offsets, the rows of one key."""
