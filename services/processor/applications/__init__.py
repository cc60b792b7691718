"""What is made of the streams. Each application imports the engine and `shared`, never another application."""
