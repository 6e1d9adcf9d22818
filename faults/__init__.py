"""The faults that come with onceproof: one module for each fault."""
