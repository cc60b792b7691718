"""The cost of the full fold alone, without Kafka or a disk: what a beacon costs in the core, by client."""
