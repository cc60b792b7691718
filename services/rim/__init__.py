"""IO that every service has in common: logs, metrics, the admin endpoint, Kafka clients, signals."""
