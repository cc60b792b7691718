"""What players send, understood: bytes and headers in, accepted beacons and rejected inputs out. Pure."""
