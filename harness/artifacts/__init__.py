"""What a run needs before it starts: jars, client versions and container images."""
