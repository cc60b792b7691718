"""What the API has besides figures, each with its parameters, its statements and its answer: views, errors, titles. Pure."""
