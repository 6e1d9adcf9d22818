"""A published bug as a scenario: where it is fixed, what was found, and the same without the lever.

    [bug]
    issue = "KAFKA-17754"

    [[bug.fixed]]                    # where all of one table holds it must not be found
    transaction_version = [2]        # in force: the lower of client and brokers

    [expect]
    findings = ["aborted-read"]      # elsewhere exactly this must be found; or client_error = { … }, for liveness

A run then says `proved` (what is expected of the bug was found), `refuted` (the lever fired and the run is valid), or
neither, and is as expected when that is what `fixed` says of this client, these brokers and this version.
"""

from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, field_validator

from onceproof.harness.artifacts import clients
from onceproof.harness.model.spec import Strict
from onceproof.harness.record.events import ClientError
from onceproof.harness.record.history import Events

Result = Literal["proved", "refuted", ""]


class FixedSpec(Strict):
    """Where the bug is not: `kafka` and `client_version` as in `>=4.2.0`, `transaction_version` one of these."""

    kafka: str = ""
    client: clients.Family | None = None
    client_version: str = ""
    transaction_version: Annotated[tuple[int, ...], Field(strict=False)] = ()

    @field_validator("kafka", "client_version")
    @classmethod
    def _specifies(cls, text: str) -> str:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            raise ValueError("expected versions as in >=4.2.0") from None
        return text

    def holds(self, *, kafka: str, client: str, transaction_version: int) -> bool:
        return (
            kafka in SpecifierSet(self.kafka)
            and self.client in (None, clients.family(client))
            and clients.in_use(client) in SpecifierSet(self.client_version)
            and (not self.transaction_version or transaction_version in self.transaction_version)
        )


class BugSpec(Strict):
    """`transaction_version`: those in force under which the lever has something to take hold of; empty, all."""

    issue: Annotated[str, Field(min_length=1)]
    transaction_version: Annotated[tuple[int, ...], Field(strict=False)] = ()
    fixed: Annotated[tuple[FixedSpec, ...], Field(strict=False)] = ()

    def affects(self, *, kafka: str, client: str, transaction_version: int) -> bool:
        where = {"kafka": kafka, "client": client, "transaction_version": transaction_version}
        return not any(each.holds(**where) for each in self.fixed)  # type: ignore[arg-type]


class ClientErrorSpec(Strict):
    """An error that a worker's client gave, by the call and by its own name for it."""

    call: str
    code: str
    fatal: bool = True

    def seen(self, events: Events) -> bool:
        """Whether a worker met it."""
        return events.first(ClientError, call=self.call, code=self.code, fatal=self.fatal) is not None

    def __str__(self) -> str:
        return f"{self.call}: {self.code}{' (fatal)' if self.fatal else ''}"
