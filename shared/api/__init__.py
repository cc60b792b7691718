"""The calls of an API: their endpoints, and the shapes of their payloads."""
