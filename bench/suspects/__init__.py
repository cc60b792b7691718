"""How well suspects name the cohort of an injected incident: `python -m bench.suspects`."""
