"""webhooks: sends anomalies to receivers by HTTP, so that no application waits for a receiver."""
