"""Smaller plans than a given one, which `shrink` tries: fewer faults, shorter ones, fewer workers, less load.

Each returns a scenario, or None where there is nothing to take away or where the result is no valid scenario.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.scenario import Scenario, parse

_LASTS_MIN_S = 1.0
_AT_MIN_S = 1.0
_RECORDS_MIN, _RATE_MIN = 2_000, 200
_NAME_MAX = 80


def document(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as it stands in a file: only what differs from the defaults, and no nulls."""
    raw = scenario.model_dump(mode="json", exclude_defaults=True, exclude={"faults"})
    raw |= {"name": scenario.name, "about": scenario.about}
    faults = [each.model_dump(mode="json", exclude_defaults=True) | {"name": each.name} for each in scenario.faults]
    found: dict[str, Any] = _without_nulls({**raw, "faults": faults})
    return found


def scenario_of(raw: Mapping[str, Any]) -> Scenario | None:
    """Return the scenario that a document describes, None if it is not valid."""
    try:
        return parse(raw, where="the smaller plan")
    except BadInput:
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        left = {key: _without_nulls(each) for key, each in value.items() if each is not None}
        return {key: each for key, each in left.items() if each != {}}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def with_faults(scenario: Scenario, kept: Sequence[int]) -> Scenario | None:
    """Return the scenario with these faults only, by their numbers.

    A fault that starts after one that is left out (`after`) is left out as well.
    """
    raw = document(scenario)
    place: dict[int, int] = {}
    faults: list[dict[str, Any]] = []
    for number, fault in enumerate(raw["faults"]):
        after = fault.get("after")
        if number not in kept or (after is not None and after not in place):
            continue
        place[number] = len(faults)
        faults.append(fault if after is None else {**fault, "after": place[after]})
    return scenario_of({**raw, "faults": faults})


def without_fault(scenario: Scenario, number: int) -> Scenario | None:
    """Return the scenario without one fault, and without those that start after it."""
    return with_faults(scenario, [each for each in range(len(scenario.faults)) if each != number])


def steps(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Yield smaller scenarios with the same faults, each with what is smaller in words."""
    raw = document(scenario)
    faults, work = raw["faults"], dict(raw.get("workload", {}))
    whole = scenario.workload
    found: list[tuple[str, dict[str, Any] | None]] = [
        ("faults begin earlier", _earlier(raw)),
        ("faults last half as long", _shorter(raw, scenario)),
        ("earlier transactions", _sooner(raw)),
        ("one worker less", {**raw, "workload": {**work, "workers": whole.workers - 1}} if whole.workers > 1 else None),
        ("half the rate", _less(raw, "records_per_s", whole.records_per_s, _RATE_MIN)),
        ("half the records", _less(raw, "records", whole.records, _RECORDS_MIN)),
    ]
    for says, made in found:
        if made is not None and faults and (smaller := scenario_of(made)) is not None:
            yield says, smaller


def _earlier(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Move all faults that start at a time, so that the first one begins after a second."""
    times = [fault["at_s"] for fault in raw["faults"] if "at_s" in fault]
    by = min(times, default=0.0) - _AT_MIN_S
    if by < 1:
        return None
    moved = [{**fault, "at_s": round(fault["at_s"] - by, 1)} if "at_s" in fault else fault for fault in raw["faults"]]
    return {**raw, "faults": moved}


def _shorter(raw: Mapping[str, Any], scenario: Scenario) -> dict[str, Any] | None:
    lasts = [each.lasts_s for each in scenario.faults]
    if max(lasts, default=0.0) < 2 * _LASTS_MIN_S:
        return None
    halved = [
        {**fault, "lasts_s": max(_LASTS_MIN_S, round(before / 2, 1))}
        for fault, before in zip(raw["faults"], lasts, strict=True)
    ]
    return {**raw, "faults": halved}


def _sooner(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Let each fault that waits for a transaction wait for one with half its number."""
    if all(fault.get("when", {}).get("count", 1) == 1 for fault in raw["faults"]):
        return None
    faults = [
        {**fault, "when": {**fault["when"], "count": max(1, fault["when"]["count"] // 2)}} if "when" in fault else fault
        for fault in raw["faults"]
    ]
    return {**raw, "faults": faults}


def _less(raw: Mapping[str, Any], key: str, before: int, least: int) -> dict[str, Any] | None:
    if before // 2 < least:
        return None
    return {**raw, "workload": {**raw.get("workload", {}), key: before // 2}}


def named(scenario: Scenario, about: str, expect: Mapping[str, Any]) -> Scenario:
    """Return the scenario under the name of a shrunk one, with another description and expectation."""
    name = f"{scenario.name.removesuffix('-shrunk')[: _NAME_MAX - 7]}-shrunk"
    raw = {**document(scenario), "name": name, "about": about, "expect": dict(expect)}
    raw.pop("bug", None)
    return parse(raw, where=name)
