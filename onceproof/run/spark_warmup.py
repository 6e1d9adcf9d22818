"""Spark, beside the start of a cluster and the run's work, so that collect finds it there.

beside.start_spark()        at once back; whoever needs the session waits for it
"""

import os
import threading
from contextlib import suppress

_NICE = 15


def start_spark(master: str = "local[2]") -> None:
    """Begin. At the lowest priority: it takes what workers and brokers leave."""
    threading.Thread(target=_start, args=(master,), name="starts Spark", daemon=True).start()


def _start(master: str) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # this thread's, and its children's
    with suppress(Exception):  # collect meets it again, in the run's own thread
        from onceproof.report import report  # noqa: F401  (matplotlib takes a second to import)
        from onceproof.verifiers.evidence.spark import warm_up

        warm_up(master)
