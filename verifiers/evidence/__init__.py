"""Evidence is what several checks share: the tables of a run, intermediate results, and the form of findings."""
