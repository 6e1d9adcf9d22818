"""A worker: the loop of begin, send, send offsets, commit, abort and seek, as a process of its own.

    polled → begun → produced → offsets-sent → before-commit → after-commit

These are the phases of a transaction at which a fault can stop the worker. Each transaction leaves an event `invoke`
with its manifest (source ranges, and outputs for each topic-partition), which is flushed before commit is called, and
then one outcome:

    ok      commit returned success
    fail    commit was never called, or an abort was acknowledged and commit had never been called
    info    commit was called and did not return success: it may have taken effect, its response lost

The workload's wiring determines where and by which client the offsets are committed. A fatal error, or a call that does
not return in time, ends the process with status 17. The harness then starts the next incarnation, as an orchestrator
would. An exception of the workload's own code ends it with status 18.
"""

import gc
import os
import secrets
import sys
import traceback
from collections.abc import Callable
from functools import partial

from onceproof.harness.context.process import EXIT_FATAL, EXIT_WORKLOAD
from onceproof.harness.model import registry
from onceproof.harness.model.databases import SQLITE_URL, address
from onceproof.harness.model.workload import Output, Source, Workload
from onceproof.harness.record import own_errors
from onceproof.harness.record.provenance import passed_on, provenance
from onceproof.workloads.clients import Batch, ClientError, Writer
from onceproof.workloads.clients.database import Database, DatabaseWriter
from onceproof.workloads.clients.drivers import driver
from onceproof.workloads.clients.sqlite import Sqlite
from onceproof.workloads.processes.child import Child


class WorkloadError(ClientError):
    """The workload's own code raised an exception, or returned an output that cannot be sent: the worker ends."""

    def __init__(self, says: str) -> None:
        super().__init__("transform", own_errors.WORKLOAD_FAILED, abortable=False, fatal=True, text=says)


class Worker:
    """One worker, with its consumer and one or more producers."""

    def __init__(self, child: Child, workload: Workload) -> None:
        self._child, self._workload, self._wiring = child, workload, workload.wiring
        self._driver = driver(child.config["client"])
        self._reader = self._driver.Reader(child.config)
        self._writers: dict[int | None, Writer] = {}
        self._database = _database(child, workload) if workload.tables else None
        self._reader.places = self._database.positions if self._database and workload.in_database else None
        self._state = workload.state() if workload.state is not None else None
        self._topics: dict[str, str] = child.config["topics"]
        self._identity: tuple[int, int] = (child.config["worker"], child.config["incarnation"])
        self._transaction: int = child.config["first_transaction"]
        # After this time the coordinator has aborted the transaction, and no call that is in progress can succeed.
        self._call_deadline_s: float = child.config["transaction_timeout_ms"] / 1000 + 1

    def run(self) -> None:
        """Run transactions until the command `stop`. Raises ClientError when the process must end."""
        if self._wiring.transactional_id_scope != "partition":
            self._writers[None] = self._start_writer(None)
        self._reader.start()
        self._child.emit("ready", client=self._driver.library())
        while not self._child.stopping.is_set():
            batch = self._reader.poll()
            if batch.assigned:
                self._take_over(batch.assigned)
            for reset in batch.resets:
                self._child.emit("position-reset", **reset)
            if batch.assigned and self._wiring.transactional_id_scope == "partition":
                # Before it was fenced, the previous owner may have committed beyond the offsets that were fetched.
                self._reader.rewind()
                continue
            for part in batch.parts() if self._wiring.transactional_id_scope == "partition" else [batch]:
                if part.records and not self._run_transaction(part):
                    break  # the reader is back at the committed offsets and returns the rest again
        self._reader.close()

    def _take_over(self, partitions: list[int]) -> None:
        if self._wiring.assignment == "group" and not self._child.config["stage"]:
            self._child.emit("assigned", partitions=partitions)
        if self._wiring.transactional_id_scope == "partition":
            # InitProducerId fences the partition's previous owner and ends the transaction that it left open (KIP-98).
            self._writers |= {partition: self._start_writer(partition) for partition in partitions}
        if self._database is not None and self._workload.in_database:
            self._database.take_over(partitions)
            self._reader.rewind()
        self._restore()

    def _start_writer(self, partition: int | None) -> Writer:
        if self._database is not None:
            self._database.start()
            return self._database
        name: str | None = self._child.config["transactional_id"]
        if not self._wiring.transactional:
            name = None
        elif self._wiring.transactional_id_scope == "partition":
            name = f"{self._child.config['prefix']}-partition-{partition}"
        elif self._wiring.transactional_id_scope == "process":
            name = f"{name}-{secrets.token_hex(4)}"
        writer = self._driver.Writer(self._child.config, name)
        writer.start()
        return writer

    def _run_transaction(self, batch: Batch) -> bool:
        """Run one transaction, and return whether it was committed. Raises ClientError on a fatal error."""
        writer = self._writers[next(iter(batch.ranges)) if self._wiring.transactional_id_scope == "partition" else None]
        committed = self._transact(batch, writer)
        self._transaction += 1
        return committed

    def _transact(self, batch: Batch, writer: Writer) -> bool:
        if not self._prepare(batch, writer):
            return False
        try:
            writer.commit()
        except ClientError as error:
            self._failed(error, "info", batch)
            if error.fatal or not error.abortable:
                raise
            writer.abort()
            self._seek_back()
            return False
        self._outcome("ok", batch)
        self._reach("after-commit")
        if self._wiring.position == "after":
            self._commit_offsets(batch)
        return True

    def _prepare(self, batch: Batch, writer: Writer) -> bool:
        """Do everything up to the commit; return False if the transaction had to be aborted, and was."""
        try:
            self._reach("polled")
            writer.begin()
            self._child.emit("begin", transaction=self._transaction)
            self._reach("begun")
            if self._wiring.position == "before":
                self._commit_offsets(batch)
                self._reach("offsets-sent")
            outputs = self._produce(batch, writer)
            self._reach("produced")
            if self._wiring.position == "in-transaction":
                self._send_offsets(batch, writer)
                self._reach("offsets-sent")
            self._invoke(batch, outputs)
            self._reach("before-commit")
        except ClientError as error:
            self._failed(error, "fail", batch)
            if error.fatal:
                raise
            writer.abort()
            self._seek_back()
            return False
        return True

    def _produce(self, batch: Batch, writer: Writer) -> dict[str, list[int]]:
        """Send the outputs of the batch, and wait for the acknowledgements."""
        records = [(source, output) for source in batch.records for output in self._outputs(source)]
        acknowledged: dict[str, list[int]] = {}
        topics = sorted({output.topic for _, output in records}) if self._wiring.each_topic else [None]
        for number, topic in enumerate(topics):
            if number:  # a mistake on purpose: the records of the previous topic become visible separately
                self._invoke(batch, acknowledged)
                writer.commit()
                writer.begin()
            for source, output in records:
                if topic in (None, output.topic):
                    self._send(writer, source, output)
            acknowledged |= writer.flush()
        return acknowledged

    def _outputs(self, source: Source) -> list[Output]:
        """Return the outputs of an input. Raises WorkloadError when the workload's own code fails."""
        process = self._workload.transform if self._state is None else self._state.process
        assert process is not None
        try:
            outputs = list(process(source))
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            says = traceback.format_exception_only(error)[-1].strip()
            raise WorkloadError(f"raised {says}, with the input {source.partition}/{source.offset}") from None
        for output in outputs:
            if problem := self._problem(output):
                raise WorkloadError(f"returned an output with {problem}")
        return outputs

    def _problem(self, output: Output) -> str:
        """Return what in an output cannot be sent, or an empty string."""
        if not isinstance(output, Output):
            return f"the type {type(output).__name__}; allowed: Output"
        if output.topic not in (allowed := (*self._workload.topics, *self._workload.tables)):
            return f"the topic {output.topic!r:.80}; allowed: {', '.join(allowed)}"
        if type(output.partition) is not int or not 0 <= output.partition < self._child.config["partitions"]:
            return f"the partition {output.partition!r:.80}; allowed: 0 to {self._child.config['partitions'] - 1}"
        for name in ("key", "value"):
            if not isinstance(getattr(output, name), bytes | None):
                return f"the {name} {getattr(output, name)!r:.80}; allowed: bytes or None"
        return ""

    def _send(self, writer: Writer, source: Source, output: Output) -> None:
        transaction = (*self._identity, self._transaction)
        header = (
            passed_on(source.header, *transaction, source.partition, source.offset)
            if source.stage
            else provenance(source.partition, source.offset, *transaction)
        )
        writer.send(self._topics.get(output.topic, output.topic), output.partition, output.key, output.value, header)

    def _send_offsets(self, batch: Batch, writer: Writer) -> None:
        with self._child.deadline(self._call_deadline_s, lambda: self._give_up("send-offsets", batch)):
            writer.send_offsets(
                self._child.config["input"], batch.ranges, self._commit_metadata(), self._reader.group()
            )

    def _commit_offsets(self, batch: Batch) -> None:
        """Commit the offsets with the consumer, outside of the transaction."""
        if self._database is not None and self._workload.in_database:
            self._database.commit_offsets(batch.ranges)
            return
        try:
            self._reader.commit(batch.ranges, self._commit_metadata())
        except ClientError as error:
            self._child.emit("error", transaction=self._transaction, **error.fields())
            if error.fatal:
                raise

    def _commit_metadata(self) -> str:
        return ",".join(map(str, (*self._identity, self._transaction)))

    def _restore(self) -> None:
        """Restore the state from the changelog, which has the effect of committed transactions only."""
        if self._state is None:
            return
        for partition in self._reader.assigned():
            records = self._reader.read_all(self._topics[self._workload.changelog], partition)
            self._state.restore(partition, records)

    def _seek_back(self) -> None:
        if self._wiring.seek_back:
            self._reader.rewind()
            self._restore()

    def _give_up(self, call: str, batch: Batch) -> None:
        """End the process, because a call did not return and commit was not called."""
        error = ClientError(
            call,
            own_errors.NEVER_RETURNED,
            abortable=False,
            fatal=True,
            text=f"no answer within {self._call_deadline_s:g} s",
        )
        self._failed(error, "fail", batch)
        self._child.emit("died", **error.fields())
        os._exit(EXIT_FATAL)

    def _failed(self, error: ClientError, kind: str, batch: Batch) -> None:
        self._child.emit("error", transaction=self._transaction, **error.fields())
        self._outcome(kind, batch)

    def _invoke(self, batch: Batch, outputs: dict[str, list[int]]) -> None:
        manifest = {"sources": _ranges(batch), "outputs": outputs, "records": len(batch.records)}
        self._child.emit("invoke", transaction=self._transaction, **manifest)

    def _outcome(self, kind: str, batch: Batch) -> None:
        self._child.emit(
            "outcome", type=kind, transaction=self._transaction, sources=_ranges(batch), records=len(batch.records)
        )

    def _reach(self, phase: str) -> None:
        if self._child.stop_at(phase, self._transaction):
            text = "the application aborts this transaction"
            raise ClientError("process", own_errors.ABORTED_ON_PURPOSE, abortable=True, fatal=False, text=text)


def _database(child: Child, workload: Workload) -> DatabaseWriter:
    """Return the writer of a process, which has another owner's name than those before it."""
    owner = f"worker-{child.config['worker']}.{child.config['incarnation']}"
    url = address(child.config["database"])
    connect: Callable[[], Database] = partial(Sqlite, url)
    if not url.startswith(SQLITE_URL):
        from onceproof.workloads.clients.postgresql import Postgresql  # its driver takes a quarter of a worker's start

        connect = partial(Postgresql, url, child.config["transaction_timeout_ms"])
    return DatabaseWriter(
        connect,
        child.config["tables"],
        owner=owner,
        fenced=workload.wiring.fenced,
        remembers=workload.wiring.remembers,
    )


def _ranges(batch: Batch) -> dict[str, list[int]]:
    return {str(partition): list(span) for partition, span in batch.ranges.items()}


def main() -> None:
    """Run a worker with the configuration that the harness sends.

    Exits with status 17 on a fatal error of the client, and with status 18 on an error of the workload.
    """
    gc.freeze()
    child = Child.begin()
    workload: Workload = registry.get("workload", child.config["workload"])  # the run examined it
    try:
        Worker(child, workload).run()
    except WorkloadError as error:
        child.emit("died", **error.fields())
        sys.stdout.flush()
        sys.stderr.write(f"the workload {workload.name} {error.text}\n")  # the last line is quoted
        sys.stderr.flush()
        os._exit(EXIT_WORKLOAD)  # a client may wait for the end of its transaction
    except ClientError as error:
        child.emit("died", **error.fields())
        sys.exit(EXIT_FATAL)


if __name__ == "__main__":
    main()
