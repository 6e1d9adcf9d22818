"""Start Spark while the cluster starts and the run works, so that the session is there when collect needs it.

analysed = spark_warmup.start_spark("local[2]", scenario)    returns immediately
analysed()                                                   waits until Spark has accepted the workload's SQL

The SQL of a registered workload is not waited for, since the tests of the package that registers it have executed it.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress

from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.model.scenario import Scenario

_NICE = 15
_ANALYSIS_DEADLINE_S = 180.0
_WARM_DEADLINE_S = 120.0
_threads: list[threading.Thread] = []


def start_spark(master: str = "local[2]", scenario: Scenario | None = None) -> Callable[[], None]:
    """Start the session and warm it up, in a thread of low priority that does not slow workers and brokers down.

    The returned function waits until Spark has analysed the scenario's own SQL. It raises BadInput when Spark does not
    accept it, and HarnessError when there is no answer within three minutes.
    """
    answer: Future[BadInput | None] = Future()
    own = scenario if scenario is not None and scenario.own_sql else None
    records = 0 if scenario is None else 2 * scenario.workload.records  # inputs and their outputs
    thread = threading.Thread(target=_start, args=(master, own, records, answer), name="starts Spark", daemon=True)
    _threads.append(thread)
    thread.start()

    def analysed() -> None:
        if own is None:
            return
        try:
            problem = answer.result(_ANALYSIS_DEADLINE_S)
        except NotInTime:
            raise HarnessError(
                f"Spark did not analyse the SQL of {own.name} within {_ANALYSIS_DEADLINE_S:g} s"
            ) from None
        if problem is not None:
            raise problem

    return analysed


def wait(deadline_s: float = _WARM_DEADLINE_S) -> None:
    """Wait, at most so many seconds, until nothing starts any more, so that Spark can be stopped."""
    until = time.monotonic() + deadline_s
    while _threads:
        _threads.pop().join(max(0.0, until - time.monotonic()))


def _start(master: str, scenario: Scenario | None, records: int, answer: "Future[BadInput | None]") -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # for this thread and its child processes
    problem = None
    try:
        if scenario is not None:
            from onceproof.verifiers.evidence.model import analyse
            from onceproof.verifiers.evidence.spark import session

            analyse(session(master, records=records), scenario)
    except BadInput as error:
        problem = error
    except Exception as error:  # the answer must come, whatever the error is
        answer.set_exception(HarnessError(f"Spark did not analyse the SQL: {type(error).__name__}: {error}"))
        return
    answer.set_result(problem)
    with suppress(Exception):  # collect meets the same error again, in the thread of the run
        from onceproof.report import report  # noqa: F401  (matplotlib takes a second to import)
        from onceproof.verifiers.evidence.spark import warm_up

        warm_up(master, records=records)
