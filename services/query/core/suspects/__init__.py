"""Ranked suspects: which cohorts explain that a metric is worse than usual (docs/suspects.md)."""
