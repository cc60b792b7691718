"""Choices of people for the page: saved views, thresholds, and titles of custom dimensions."""
