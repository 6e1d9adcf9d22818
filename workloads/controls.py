"""Negative controls: the copy with one thing wrong. Each must be found out under the fault that brings it to light.

    N1   copy-at-least-once      position committed after the output, no transaction       → duplicate
    N2   copy-at-most-once       position committed before the output                      → lost
    N3   copy-auto-commit        position committed by the consumer on its own             → lost
    N4   copy-position-apart     transaction for the output, position by the consumer      → duplicate
    N5   copy-random-id          a new transactional id for each process, fixed partitions → duplicate
    N6   copy-no-generation      each worker's own id, fixed partitions, one takes over another's → duplicate
    N8   copy-no-seek-back       goes on after an abort where it was                       → lost
    N10  produce-not-idempotent  retries without idempotence                               → duplicate

Each is one mistake that a code review would let pass: a switch of the wiring, or two that go together; in N6 none, but
who takes over.
"""

from dataclasses import replace

from onceproof.workloads.copy import COPY, FIXED, PRODUCE

AT_LEAST_ONCE = replace(
    COPY,
    name="copy-at-least-once",
    about="Broken on purpose: position committed after the output, without a transaction.",
    wiring=replace(COPY.wiring, transactional=False, position="after"),
    rows=("N1",),
)
AT_MOST_ONCE = replace(
    COPY,
    name="copy-at-most-once",
    about="Broken on purpose: position committed before the output, without a transaction.",
    wiring=replace(COPY.wiring, transactional=False, position="before"),
    rows=("N2",),
)
AUTO_COMMIT = replace(
    COPY,
    name="copy-auto-commit",
    about="Broken on purpose: the consumer commits positions on its own, every half second.",
    wiring=replace(COPY.wiring, transactional=False, position="auto"),
    rows=("N3",),
)
POSITION_APART = replace(
    COPY,
    name="copy-position-apart",
    about="Broken on purpose: a transaction for the output, but the position is committed by the consumer behind it.",
    wiring=replace(COPY.wiring, position="after"),
    rows=("N4",),
)
RANDOM_ID = replace(
    FIXED,
    name="copy-random-id",
    about="Broken on purpose: a new transactional id for each process, so that a successor fences nobody.",
    wiring=replace(FIXED.wiring, transactional_id_scope="process"),
    rows=("N5",),
)
NO_GENERATION = replace(
    FIXED,
    name="copy-no-generation",
    about="Broken on purpose: who takes over another worker's partitions has an id of its own, and fences nobody.",
    rows=("N6",),
)
NO_SEEK_BACK = replace(
    COPY,
    name="copy-no-seek-back",
    about="Broken on purpose: after an abort it goes on where it was instead of seeking back.",
    wiring=replace(COPY.wiring, seek_back=False),
    rows=("N8",),
)
NOT_IDEMPOTENT = replace(
    PRODUCE,
    name="produce-not-idempotent",
    about="Broken on purpose: retries without idempotence.",
    wiring=replace(PRODUCE.wiring, idempotent=False),
    rows=("N10",),
)
WORKLOADS = (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMIT,
    POSITION_APART,
    RANDOM_ID,
    NO_GENERATION,
    NO_SEEK_BACK,
    NOT_IDEMPOTENT,
)
