"""Benchmarks: each claim is a ratio, measured side by side in one run."""
