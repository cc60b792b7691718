"""Chaos as production has it: three brokers and several hosts on a network that fails."""
