"""Deployment: topics, rights, local runs, images, manifests, jars."""
