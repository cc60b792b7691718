"""HTTP to Kafka: what a request and a beacon cost a collector."""
