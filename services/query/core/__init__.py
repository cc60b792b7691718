"""What a question means, and how it is answered: pure."""
