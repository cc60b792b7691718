"""Lands topic `live` by minute: the history of the live picture."""
