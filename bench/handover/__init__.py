"""Hand-over of large state: how long a partition stands still when its owner dies or leaves."""
