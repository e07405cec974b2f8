"""Client of Kafka: settings, ends of topics, batches, and the fetching of messages."""
