"""The cost of the finalizer."""
