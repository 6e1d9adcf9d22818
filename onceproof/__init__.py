"""A chaos and correctness harness for Kafka pipelines that claim exactly-once."""
