"""Codes of errors in a range of views."""
