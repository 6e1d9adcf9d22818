"""The errors that a worker reports in the place of its client, with what they mean.

Their names begin with `onceproof:`, so that nobody looks for them in the documentation of a client. A name such as
`_TIMED_OUT` is librdkafka's own, and `PRODUCER_FENCED` is one of Kafka's protocol.
"""

from collections.abc import Mapping

ABORTED_ON_PURPOSE = "onceproof:ABORTED_ON_PURPOSE"
FENCED = "onceproof:FENCED_BY_DATABASE"
NEVER_RETURNED = "onceproof:NEVER_RETURNED"
WORKLOAD_FAILED = "onceproof:WORKLOAD_FAILED"
MEANING: Mapping[str, str] = {
    ABORTED_ON_PURPOSE: "a fault of the scenario made the worker abort its transaction",
    FENCED: "the database has another owner of a partition, so the worker ended",
    NEVER_RETURNED: "a call of the client did not return within the time-out of its transaction, so the worker ended",
    WORKLOAD_FAILED: "the workload's own code raised an exception, or returned an output that cannot be sent",
}
