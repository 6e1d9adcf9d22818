"""A scenario that reproduces a published bug names its issue and the versions in which it is fixed.

    [bug]
    issue = "KAFKA-17754"

    [[bug.fixed]]                    # the bug is fixed if all keys of one such table match
    transaction_version = [2]        # the version in force, the lower of the client's and the brokers'

    [expect]
    findings = ["aborted-read"]      # expected where the bug is not fixed; or client_error = { … }, for liveness

The result of a run is `proved` if the expectation is met, `refuted` if the faults took effect and the run is valid, and
neither otherwise. The run is as expected if its result agrees with `fixed` for its client, brokers and versions.
"""

from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, field_validator

from onceproof.harness.artifacts import clients
from onceproof.harness.model.spec import Strict
from onceproof.harness.record.events import ClientError
from onceproof.harness.record.history import Events

Result = Literal["proved", "refuted", ""]
TransactionVersion = Annotated[int, Field(ge=0, le=2)]


class FixedSpec(Strict):
    """A table `[[bug.fixed]]`: versions in which the bug is fixed. Keys that are not set match everything.

    - `kafka`: Kafka versions, as a version specifier such as `>=4.2.0`.
    - `client`: the client library, `librdkafka` or `java`.
    - `client_version`: versions of the client library, as a version specifier.
    - `transaction_version`: values of `transaction.version` in force, the lower of the client's and the brokers'.
    """

    kafka: str = ""
    client: clients.Family | None = None
    client_version: str = ""
    transaction_version: Annotated[tuple[TransactionVersion, ...], Field(strict=False)] = ()

    @field_validator("kafka", "client_version")
    @classmethod
    def _specifies(cls, text: str) -> str:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            raise ValueError("expected a version specifier such as >=4.2.0") from None
        return text

    def holds(self, *, kafka: str, client: str, transaction_version: int) -> bool:
        """Return whether all keys match a Kafka version, a client (`java==3.9.2`) and the version in force."""
        return (
            kafka in SpecifierSet(self.kafka)
            and self.client in (None, clients.family(client))
            and clients.in_use(client) in SpecifierSet(self.client_version)
            and (not self.transaction_version or transaction_version in self.transaction_version)
        )


class BugSpec(Strict):
    """The table `[bug]` of a scenario: the bug that it reproduces.

    - `issue`: the issue of the bug, such as `KAFKA-17754`.
    - `transaction_version`: values of `transaction.version` in force under which the scenario's faults can take effect.
      A matrix skips other combinations. An empty list means all values.
    - `fixed`: the versions in which the bug is fixed; one matching table is enough.
    """

    issue: Annotated[str, Field(min_length=1)]
    transaction_version: Annotated[tuple[TransactionVersion, ...], Field(strict=False)] = ()
    fixed: Annotated[tuple[FixedSpec, ...], Field(strict=False)] = ()

    def affects(self, *, kafka: str, client: str, transaction_version: int) -> bool:
        """Return whether the bug is not fixed in these versions, which are those of `FixedSpec.holds`."""
        where = {"kafka": kafka, "client": client, "transaction_version": transaction_version}
        return not any(each.holds(**where) for each in self.fixed)  # type: ignore[arg-type]


class ClientErrorSpec(Strict):
    """The key `client_error` of `[expect]`: an error that a worker's client must have reported.

    - `call`: the client call that failed, such as `commit` or `abort`.
    - `code`: the client's own name of the error, such as `INVALID_TXN_STATE`.
    - `fatal`: whether the error was fatal for the producer.
    """

    call: str
    code: str
    fatal: bool = True

    def seen(self, events: Events) -> bool:
        """Return whether a client reported the error."""
        return events.first(ClientError, call=self.call, code=self.code, fatal=self.fatal) is not None

    def __str__(self) -> str:
        return f"{self.call}: {self.code}{' (fatal)' if self.fatal else ''}"
