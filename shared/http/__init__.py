"""Shared parts of requests and answers of services."""
