"""`python -m deploy.topics grow`: more partitions, and the state moved to them (docs/growing.md)."""
