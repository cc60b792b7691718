"""The processor: reads topics, keeps state, writes topics. One core per partition, exactly once."""
