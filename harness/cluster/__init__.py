"""One Kafka cluster in Docker: its nodes, its proxied links, the request proxy and the Admin client."""
