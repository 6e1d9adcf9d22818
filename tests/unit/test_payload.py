"""Spark SQL and Python agree on every payload and digest."""

from collections import Counter

from pyspark.sql import SparkSession

from onceproof.harness.record import payload
from onceproof.verifiers.evidence.frames import rows


def test_spark_computes_the_same_value_and_digest(spark: SparkSession) -> None:
    numbers = [0, 7, 123_456, 10**11]
    frame = spark.createDataFrame([(n, f"k{n % 3}") for n in numbers], "number bigint, key string").selectExpr(
        "number",
        "rpad(concat(lpad(cast(number AS string), 12, '0'), ' ', '42', ' '), 200, "
        "     lpad(lower(hex(xxhash64(cast(concat('42:', number) AS binary)))), 16, '0')) AS value",
        "cast(key AS binary) AS key",
    )
    found = rows(frame.selectExpr("number", "value", "key", "xxhash64(key, cast(value AS binary)) AS digest"))
    for row in found:
        ours = payload.value(42, row["number"], 200)
        assert row["value"].encode() == ours
        assert row["digest"] == payload.digest(bytes(row["key"]), ours)


def test_values_have_their_length_and_differ() -> None:
    values = [payload.value(1, number, size) for number in range(50) for size in (64, 100, 1000)]
    assert {len(value) for value in values} == {64, 100, 1000}
    assert len(set(values)) == len(values)


def test_keys_are_uniform_or_skewed_by_plan() -> None:
    uniform = Counter(payload.Keys(1, 10, 0).index(number) for number in range(10_000))
    assert len(uniform) == 10
    assert max(uniform.values()) < 1_300
    skewed = Counter(payload.Keys(1, 10, 1.5).index(number) for number in range(10_000))
    assert skewed[0] > 4_000 > skewed[9]
