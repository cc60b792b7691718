"""Container images: what builds them, and a docker daemon of one's own to test them in."""
