"""The steps of one run, from its plan to its verdict."""
