"""Who plays in a demo: simulated viewers, their networks, and a page with a real recorder."""
