"""Holds the packages of the lock, of jars and of images against a vulnerability database on disk."""
