"""Questions as SQL: relation `views`, the statements over it, and the sums that answer without it. Pure."""
