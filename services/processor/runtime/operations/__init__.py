"""Commands of operators on the state and the input of an application."""
