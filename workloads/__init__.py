"""The workloads that come with onceproof, the programs that run them, and the drivers of Kafka clients."""
