"""Alerts: the rules of a customer, and what their incidents go through."""
