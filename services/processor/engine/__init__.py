"""The stream-processing engine. Pure: no Kafka, no RocksDB, no clock, no thread."""
