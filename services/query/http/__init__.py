"""The HTTP API: requests to questions, answers to JSON."""
