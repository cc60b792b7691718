"""IO that all services share: logs, metrics, the admin endpoint, Kafka clients, signals."""
