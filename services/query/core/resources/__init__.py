"""Resources of the API besides figures, each with its parameters, statements and answer: views, errors, titles. Pure."""
