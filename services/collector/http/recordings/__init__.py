"""Session recordings: uploads that are streamed into Kafka, and their route."""
