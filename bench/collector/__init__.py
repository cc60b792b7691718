"""HTTP to Kafka: the cost of a request and of a beacon in a collector."""
