"""The vocabulary of the whole system: pure values, no IO, no clock, no service."""
