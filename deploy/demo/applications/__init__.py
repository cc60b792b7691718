"""The demo of each application: sends input, and compares the output with it."""
