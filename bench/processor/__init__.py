"""The cost of a beacon: Playhead, Kafka Streams and Quix Streams on one input, with every view checked."""
