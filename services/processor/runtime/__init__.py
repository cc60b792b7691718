"""The rim of the processor: Kafka, RocksDB, threads and clocks; no business."""
