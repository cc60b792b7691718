"""The applications of the processor. Each imports the engine and `shared`, never another application."""
