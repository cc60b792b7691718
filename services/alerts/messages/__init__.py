"""Messages: what receivers get of a change of an incident. Pure."""
