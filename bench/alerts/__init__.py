"""How soon alerts find an incident, and how often they report one without a cause."""
