"""alerts: holds what viewers experience now against rules and what is usual, and opens and closes incidents."""
