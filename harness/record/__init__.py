"""The files of a run folder: history, tables, manifest and results."""
