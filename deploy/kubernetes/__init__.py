"""Manifests for Kubernetes (kustomize), and what builds them for tests."""
