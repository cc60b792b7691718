"""What of a customer's beacons has just come, and what was rejected: for those who integrate a player."""
