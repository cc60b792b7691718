"""The newest beacons and rejected input of a customer, for those who integrate a player."""
