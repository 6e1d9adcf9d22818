"""Benchmarks of the verifiers and of the request proxy."""
