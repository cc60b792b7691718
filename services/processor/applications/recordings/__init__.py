"""recordings: session recordings put together from chunks, in strict order, and stored as objects."""
