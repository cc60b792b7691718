"""The intake: parses what players send. Bytes and headers in, accepted beacons and rejected inputs out. Pure."""
