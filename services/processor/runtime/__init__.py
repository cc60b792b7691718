"""The processor's IO: Kafka, RocksDB, threads and clocks. It knows no application."""
