"""Collect copies the topics and the log of a run into tables."""
