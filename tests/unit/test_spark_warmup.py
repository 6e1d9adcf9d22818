"""Spark is stopped when nothing starts it any more."""

import threading
import time

import pytest

from onceproof.run import spark_warmup


def test_the_end_of_a_session_waits_for_what_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    go, done = threading.Event(), threading.Event()

    def start(_master: str, _scenario: object, _records: int, answer: object) -> None:
        go.wait(10)
        done.set()

    monkeypatch.setattr(spark_warmup, "_start", start)
    spark_warmup.start_spark()
    spark_warmup.wait(0.1)
    assert not done.is_set()  # it waits no longer than it may
    spark_warmup.start_spark()
    threading.Timer(0.2, go.set).start()
    began = time.monotonic()
    spark_warmup.wait(10)
    assert done.is_set() and time.monotonic() - began < 10
