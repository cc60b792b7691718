"""Tries rules on minutes that were landed, each in a process of its own."""
