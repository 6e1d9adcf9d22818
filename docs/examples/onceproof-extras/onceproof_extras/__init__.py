"""A fault, a check and a workload that are registered from outside onceproof."""
