"""Start Spark while the cluster starts and the run works, so that the session is there when collect needs it.

spark_warmup.start_spark()        returns immediately; the first use of the session waits for it
"""

import os
import threading
from contextlib import suppress

_NICE = 15


def start_spark(master: str = "local[2]") -> None:
    """Start the session and warm it up, in a thread of low priority that does not slow workers and brokers down."""
    threading.Thread(target=_start, args=(master,), name="starts Spark", daemon=True).start()


def _start(master: str) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # for this thread and its child processes
    with suppress(Exception):  # collect meets the same error again, in the thread of the run
        from onceproof.report import report  # noqa: F401  (matplotlib takes a second to import)
        from onceproof.verifiers.evidence.spark import warm_up

        warm_up(master)
