"""How soon alerts find an incident, and how often they find one that is none."""
