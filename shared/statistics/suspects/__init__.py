"""Which cohorts explain that a metric is worse than usual: the method of docs/suspects.md over counts. Pure; needs numpy."""
