"""Hand-over of large state: how long a partition makes no progress when its owner dies or leaves."""
