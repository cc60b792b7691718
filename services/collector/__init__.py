"""The collector: receives HTTP requests and produces to Kafka. It answers 200 or 204 after all in-sync replicas have the data."""
