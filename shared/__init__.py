"""The definitions that all services share: pure values, no IO, no clock, no service."""
