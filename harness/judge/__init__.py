"""Decides whether a run could have failed, and whether its result is the expected one."""
