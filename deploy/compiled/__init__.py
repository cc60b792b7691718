"""The fold compiled from the same source: what is compiled, and the command that does it."""
