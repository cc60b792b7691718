"""api_schemas: learns an API's schema from its calls, and reports changes."""
