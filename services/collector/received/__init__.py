"""What is received of each customer, and what of it is rejected, by release: counted, and reported to topic `received`."""
