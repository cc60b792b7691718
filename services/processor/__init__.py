"""The processor: Kafka in, state, Kafka out; one core a partition, exactly once."""
