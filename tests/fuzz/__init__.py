"""Hostile requests through the real intake of every route and the real fold of every application, in memory."""
