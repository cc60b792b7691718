"""api_schemas: an API's schema, learned from its calls, and what in it changes."""
