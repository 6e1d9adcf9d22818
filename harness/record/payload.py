"""The payload of an input: its key and value derive from the seed and the input's number, and a digest covers both.

    value = rpad("<number, 12 digits> <seed> ", record_bytes, <16 hex digits of xxhash64("<seed>:<number>")>)
    digest = xxhash64(value, seed = xxhash64(key, seed = 42))

The digest is Spark's `xxhash64(key, value)` on binary columns: XXH64 with seed 42, where the hash of the key is the
seed for the value. Spark SQL, Python and Java compute the same digest, and the expected one can be computed even if
DeleteRecords has removed the input from the log.
"""

import bisect
from collections.abc import Sequence
from itertools import accumulate

import xxhash

_SPARK_SEED = 42
NUMBER_DIGITS = 12
MARK = " "


def key_hash(key: bytes | None) -> int:
    """Return the signed 64-bit hash of a key, equal to Spark's `xxhash64(key)`, which is 42 for null."""
    return digest(key, None)


def digest(key: bytes | None, value: bytes | None) -> int:
    """Return the signed 64-bit digest of key and value, equal to Spark's `xxhash64(key, value)`, which skips nulls."""
    seed = _SPARK_SEED if key is None else xxhash.xxh64_intdigest(key, seed=_SPARK_SEED)
    return _signed(seed if value is None else xxhash.xxh64_intdigest(value, seed=seed))


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def value(seed: int, number: int, record_bytes: int) -> bytes:
    """Return the value of input `number`, which has `record_bytes` bytes."""
    head = f"{number:0{NUMBER_DIGITS}d}{MARK}{seed}{MARK}"
    pad = xxhash.xxh64_hexdigest(f"{seed}:{number}".encode(), seed=_SPARK_SEED)
    missing = record_bytes - len(head)
    return (head + pad * (missing // len(pad) + 1))[:record_bytes].encode()


def number(value: bytes) -> int | None:
    """Return the input's number that a value contains, or None if it is not a payload of this module."""
    head = value[:NUMBER_DIGITS]
    return int(head) if head.isdigit() else None


class Keys:
    """Chooses the key of each input from `count` keys.

    With `skew` 0, all keys are equally frequent. Otherwise their frequencies follow a Zipf distribution with this
    exponent, and key 0 is the most frequent.
    """

    def __init__(self, seed: int, count: int, skew: float) -> None:
        self._seed = seed
        self._count = count
        self._cumulative: Sequence[float] = ()
        if skew:
            weights = list(accumulate(1 / (rank + 1) ** skew for rank in range(count)))
            self._cumulative = [weight / weights[-1] for weight in weights]

    def index(self, number: int) -> int:
        """Return the index of the key of input `number`, from 0."""
        draw: int = xxhash.xxh64_intdigest(f"key:{self._seed}:{number}".encode(), seed=_SPARK_SEED)
        if not self._cumulative:
            return draw % self._count
        return min(bisect.bisect_left(self._cumulative, draw / 2**64), self._count - 1)

    def key(self, number: int) -> bytes:
        """Return the key of input `number`."""
        return f"k{self.index(number)}".encode()
