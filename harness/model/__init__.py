"""The input of a run: scenario, plan, workload, system, and the registry of extensions."""
