"""What a beacon costs: Playhead beside Kafka Streams and Quix Streams, on one input, every view checked."""
