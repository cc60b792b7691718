"""What operators do to the state and the input of an application, by commands."""
