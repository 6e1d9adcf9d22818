"""The same measurements with each Kafka client, as processes of their own.

    python -m onceproof.bench.clients.librdkafka '{"what": "throughput", "bootstrap": …, "topic": …}'
    java … JavaClient '{"what": "throughput", "bootstrap": …, "topic": …}'

Both take the same JSON and print one line of JSON for each pair, `{"without": 81250.4, "with": 79318.0}`. In each pair
the two are measured one after the other, the first of them in turns, so that a machine which becomes slower hits both
alike.

    throughput    records per second, by one idempotent producer without transactions and one with, at full speed for
                  `seconds`; a transaction is committed every `interval_ms`
    cost          milliseconds for `records` records to `partitions` partitions until they are acknowledged, and the
                  same in a transaction until it is committed
    read          seconds to read the topic, which has `committed` and `aborted` records, with read_uncommitted and
                  with read_committed
    copy          nothing: it copies the topic to `output` in transactions of at most `records` (Java only)
    fill          nothing: it writes what `read` reads (librdkafka only)
    scope         records per second in transactions that write `records` to each partition, by one producer, or by
                  one for each partition; only the one that `scope` says is measured (`{"rate": …}`), since memory and
                  connections are measured from outside
"""
