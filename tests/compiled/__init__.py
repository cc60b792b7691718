"""Compares the two builds of the fold by what they write."""
