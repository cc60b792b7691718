"""What an installation of hundreds of slots and partitions costs beside its beacons, measured small and extrapolated."""
