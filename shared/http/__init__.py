"""What services share about requests and their answers."""
