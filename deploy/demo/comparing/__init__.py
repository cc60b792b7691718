"""What a run made, compared with the truth of its simulated players."""
