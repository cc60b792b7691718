"""The meaning of a question, and its answer: pure."""
