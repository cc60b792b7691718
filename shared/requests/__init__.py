"""A player's requests for media: what a beacon says of one. The processor counts them, service `query` lists them."""
