"""The interface between a run and its faults: the fault protocols, the fault context and the worker processes."""
