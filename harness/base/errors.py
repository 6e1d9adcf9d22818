"""What can go wrong outside the system under test, by who has to act.

`BadInput` is the user's to mend (exit status 2), `HarnessError` is ours (3). Neither says anything about Kafka.
"""


class BadInput(Exception):
    """A scenario, option or run folder that cannot be used: one line that says what, where, and what is allowed."""


class HarnessError(Exception):
    """The harness could not do its work; the run's verdict is `unknown: harness-error`."""


class DeadlineError(HarnessError):
    """A wait ended at its deadline; the message says what it waited for."""
