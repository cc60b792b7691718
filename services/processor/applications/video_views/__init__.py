"""Beacons of a view become its finished row, and live gauges."""
