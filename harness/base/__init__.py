"""Errors, deadlines, paths and progress output, which depend on no other package of the harness."""
