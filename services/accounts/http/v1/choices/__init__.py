"""What people choose to see: saved views, thresholds, and what their custom dimensions are called."""
