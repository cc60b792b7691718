"""How streams are worked. Pure: no Kafka, no RocksDB, no clock, no thread."""
