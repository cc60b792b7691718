"""Titles, and how many watch them at a time."""
