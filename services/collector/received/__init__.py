"""Counts of the input of each customer, and of its rejected part, by release, reported to topic `received`."""
