"""api_baselines: how an API usually is, and when it is not."""
