"""Requests that data be deleted, of a viewer or of a customer: their command and their steps."""
