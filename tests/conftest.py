"""Hypothesis as every test here uses it: no deadlines on a busy machine, and `--hypothesis-profile many` for a long search."""

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("many", deadline=None, max_examples=10_000)
settings.load_profile("default")
