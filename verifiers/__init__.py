"""The verifiers: one module for each check of a run, the collection of its tables, and the evidence they share."""
