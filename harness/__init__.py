"""The library that faults, workloads, verifiers and the command line are built on."""
