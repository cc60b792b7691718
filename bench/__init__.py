"""Benchmarks: each claim a ratio, measured side by side in one run."""
