"""users: a table whose only database is Kafka, behind a REST API on every slot."""
