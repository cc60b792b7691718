"""A load test of everything on this machine."""
