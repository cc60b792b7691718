"""What the state of views costs: in memory, on disk, as it grows, and when a slot starts again."""
