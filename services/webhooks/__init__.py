"""webhooks: tells others of anomalies by HTTP, so that no application waits for them."""
