"""Compares the packages of the lock, of jars and of images with a vulnerability database on disk."""
