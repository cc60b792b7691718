"""api_baselines: learns the usual traffic, errors and latency of an API, and reports anomalies."""
