"""What becomes a file."""
