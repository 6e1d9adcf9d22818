"""Negative controls: pipelines with one mistake each, which must be found under the fault that reveals it.

    copy-at-least-once      offsets committed after the output, no transaction                    → duplicate
    copy-at-most-once       offsets committed before the output, no transaction                   → lost
    copy-auto-commit        offsets committed by the consumer's auto-commit                       → lost
    copy-position-apart     output in a transaction, offsets committed by the consumer after it   → duplicate
    copy-random-id          a new transactional id for each process, partitions by configuration  → duplicate
    copy-no-generation      one transactional id for each worker, and partitions that move from
                            one worker to another without a group's generation                    → duplicate
    copy-no-seek-back       no seek back to the committed offsets after an abort                  → lost
    produce-not-idempotent  retries without idempotence                                           → duplicate

Each is a mistake that a code review could miss. All but one change the wiring of a correct pipeline; the mistake of
`copy-no-generation` is only that another worker takes partitions over.
"""

from dataclasses import replace

from onceproof.workloads.copy import COPY, FIXED, PRODUCE

AT_LEAST_ONCE = replace(
    COPY,
    name="copy-at-least-once",
    about="Broken on purpose: offsets are committed after the output, without a transaction.",
    wiring=replace(COPY.wiring, transactional=False, position="after"),
)
AT_MOST_ONCE = replace(
    COPY,
    name="copy-at-most-once",
    about="Broken on purpose: offsets are committed before the output, without a transaction.",
    wiring=replace(COPY.wiring, transactional=False, position="before"),
)
AUTO_COMMIT = replace(
    COPY,
    name="copy-auto-commit",
    about="Broken on purpose: offsets are committed by the consumer's auto-commit, every 500 ms.",
    wiring=replace(COPY.wiring, transactional=False, position="auto"),
)
POSITION_APART = replace(
    COPY,
    name="copy-position-apart",
    about="Broken on purpose: the output is in a transaction, but the consumer commits the offsets after it.",
    wiring=replace(COPY.wiring, position="after"),
)
RANDOM_ID = replace(
    FIXED,
    name="copy-random-id",
    about="Broken on purpose: a new transactional id for each process, so that a successor fences no zombie.",
    wiring=replace(FIXED.wiring, transactional_id_scope="process"),
)
NO_GENERATION = replace(
    FIXED,
    name="copy-no-generation",
    about="Broken on purpose: a worker that takes over partitions has another transactional id, and fences no zombie.",
)
NO_SEEK_BACK = replace(
    COPY,
    name="copy-no-seek-back",
    about="Broken on purpose: after an abort the worker does not seek back to the committed offsets.",
    wiring=replace(COPY.wiring, seek_back=False),
)
NOT_IDEMPOTENT = replace(
    PRODUCE,
    name="produce-not-idempotent",
    about="Broken on purpose: the producer retries without idempotence.",
    wiring=replace(PRODUCE.wiring, idempotent=False),
)
