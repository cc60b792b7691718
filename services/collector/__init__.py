"""The collector: HTTP in, Kafka out. What it answers 200 or 204 to is on all in-sync replicas."""
