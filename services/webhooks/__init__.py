"""webhooks: sends anomalies to others by HTTP, so that no application waits for them."""
