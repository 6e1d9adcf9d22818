"""The partition of an internal topic in which a coordinator keeps what it knows of a group or a transactional id."""

_SIGN = 1 << 31


def partition(name: str, count: int) -> int:
    """Return the number of the partition, of `count`, for the name of a group or a transactional id.

    As in Kafka's `partitionFor`, it is the absolute value of the name's Java hash code modulo the number of partitions;
    the absolute value of the lowest integer, which has no positive counterpart, is 0.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) % (1 << 32)
    signed = code - (1 << 32) if code & _SIGN else code
    return (0 if signed == -_SIGN else abs(signed)) % count
