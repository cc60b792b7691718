"""One view, and what its beacons say."""
