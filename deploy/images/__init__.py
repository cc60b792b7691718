"""Container images: their build, and a private docker daemon to test them in."""
