"""Calls of APIs: what is sent, what is learned of them, and what is reported."""
