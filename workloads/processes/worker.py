"""A worker: the one loop of begin, send, send offsets, commit, abort, seek. A process of its own.

    polled → begun → produced → offsets-sent → before-commit → after-commit

Each transaction leaves an event `invoke` with its manifest (source ranges, outputs for each topic-partition), flushed
before commit is called, then one outcome:

    ok      commit returned success
    fail    commit was never called, or an abort was acknowledged and commit had never been called
    info    commit was called and did not return success: it may have taken effect, its answer lost

Any fatal error, and any call that does not return in time, ends the process with status 17; the harness starts the
next incarnation, as an orchestrator would.
"""

import gc
import os
import sys
from collections.abc import Iterable

from harness import registry
from harness.protocols import Output, Source, Workload
from workloads.clients import Batch, Client, ClientError
from workloads.clients.librdkafka import Librdkafka
from workloads.processes.child import Child

EXIT_FATAL = 17


class Worker:
    def __init__(self, child: Child, workload: Workload, client: Client) -> None:
        self._child, self._workload, self._client = child, workload, client
        self._state = workload.state() if workload.state is not None else None
        self._topics: dict[str, str] = child.config["topics"]
        self._identity = f"{child.config['worker']},{child.config['incarnation']}"
        self._transaction: int = child.config["first_transaction"]
        # After this the coordinator has aborted the transaction: no call that is still under way can succeed.
        self._call_deadline_s: float = child.config["transaction_timeout_ms"] / 1000 + 1

    def run(self) -> None:
        self._client.start()
        self._child.emit("ready")
        while not self._child.stopping.is_set():
            batch = self._client.poll()
            if batch.assigned:
                self._child.emit("assigned", partitions=batch.assigned)
                self._restore()
            for reset in batch.resets:
                self._child.emit("position-reset", **reset)
            if batch.records:
                self._transact(batch)
                self._transaction += 1
        self._client.close()

    def _transact(self, batch: Batch) -> None:
        """One transaction. Raises ClientError when the producer is no more."""
        if not self._prepare(batch):
            return
        try:
            self._client.commit()
        except ClientError as error:
            self._child.emit("error", transaction=self._transaction, **error.fields())
            self._outcome("info", batch)
            if error.fatal or not error.abortable:
                raise
            self._client.abort()
            self._seek_back()
            return
        self._outcome("ok", batch)
        self._stop("after-commit")

    def _prepare(self, batch: Batch) -> bool:
        """Everything up to the commit; False when it had to be aborted, which is then done."""
        try:
            self._stop("polled")
            self._client.begin()
            self._child.emit("begin", transaction=self._transaction)
            self._stop("begun")
            for source in batch.records:
                for output in self._outputs(source):
                    self._send(source, output)
            outputs = self._client.flush()
            self._stop("produced")
            with self._child.deadline(self._call_deadline_s, lambda: self._stuck("send-offsets", batch)):
                self._client.send_offsets(batch.ranges, f"{self._identity},{self._transaction}")
            self._stop("offsets-sent")
            manifest = {"sources": _ranges(batch), "outputs": outputs, "records": len(batch.records)}
            self._child.emit("invoke", transaction=self._transaction, **manifest)
            self._stop("before-commit")
        except ClientError as error:
            self._child.emit("error", transaction=self._transaction, **error.fields())
            self._outcome("fail", batch)
            if error.fatal:
                raise
            self._client.abort()
            self._seek_back()
            return False
        return True

    def _outputs(self, source: Source) -> Iterable[Output]:
        if self._state is not None:
            return self._state.process(source)
        assert self._workload.transform is not None
        return self._workload.transform(source)

    def _restore(self) -> None:
        """Take the state up from the changelog: what an abort undid, or another owner added, is then as committed."""
        if self._state is None:
            return
        for partition in self._client.assigned():
            records = self._client.read_all(self._topics[self._workload.changelog], partition)
            self._state.restore(partition, records)

    def _send(self, source: Source, output: Output) -> None:
        provenance = f"{source.partition},{source.offset},{self._identity},{self._transaction}"
        self._client.send(
            self._topics[output.topic], output.partition, output.key, output.value, provenance.encode()
        )

    def _seek_back(self) -> None:
        if self._workload.seek_back:
            self._client.rewind()
            self._restore()

    def _stuck(self, call: str, batch: Batch) -> None:
        """A call that never returns, before commit was called."""
        error = ClientError(call, "_NEVER_RETURNED", abortable=False, fatal=True,
                            text=f"no answer within {self._call_deadline_s:g} s")  # fmt: skip
        self._child.emit("error", transaction=self._transaction, **error.fields())
        self._outcome("fail", batch)
        self._child.emit("died", **error.fields())
        os._exit(EXIT_FATAL)

    def _outcome(self, kind: str, batch: Batch) -> None:
        self._child.emit(
            "outcome", type=kind, transaction=self._transaction, sources=_ranges(batch), records=len(batch.records)
        )

    def _stop(self, phase: str) -> None:
        self._child.stop_at(phase, self._transaction)


def _ranges(batch: Batch) -> dict[str, list[int]]:
    return {str(partition): list(span) for partition, span in batch.ranges.items()}


def main() -> None:
    gc.freeze()
    child = Child.begin()
    workload = registry.workload(child.config["workload"])
    client = Librdkafka({**child.config, "transactional": workload.transactional})
    try:
        Worker(child, workload, client).run()
    except ClientError as error:
        child.emit("died", **error.fields())
        sys.stdout.flush()
        sys.exit(EXIT_FATAL)


if __name__ == "__main__":
    main()
