"""What is said of the cost of transactions: intervals, tables and plots of pairs."""

from pathlib import Path

import pytest

from onceproof.bench import claim_pages
from onceproof.bench.claims import SPREAD, Cell
from onceproof.bench.paired import interval


def test_an_interval_lies_between_two_of_the_values() -> None:
    found = interval([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])
    assert (found.low, found.median, found.high) == (1.0, 3.5, 6.0)  # 1 - 2/64 = 96.9% of all medians
    nine = interval([float(each) for each in range(1, 10)])
    assert (nine.low, nine.median, nine.high) == (2.0, 5.0, 8.0)  # 1 - 2 (1 + 9)/512 = 96.1%
    many = interval([float(each) for each in range(1, 46)])
    assert (many.low, many.high) == (16.0, 30.0)  # as tables of the sign test say
    with pytest.raises(ValueError, match="5 values; allowed: at least 6"):
        interval([1.0] * 5)


def cell(claim: str, before: float, after: float, **setting: int) -> Cell:
    peaks = ((14.0, 4.0), (62.0, 176.0)) if claim == "scope" else None
    return Cell(claim=claim, client="java", setting=setting, pairs=[(before, after)] * 6, peaks=peaks)


def test_tables_and_plots_of_every_claim(tmp_path: Path) -> None:
    cells = [
        cell("throughput", 1000.0, 970.0, bytes=1000, interval_ms=100),
        cell("cost", 3.0, 31.5, records=10, partitions=1),
        cell("cost", 3.0, 51.5, records=SPREAD, partitions=8),
        cell("isolation", 1.0, 1.25, bytes=100, aborted_percent=10),
        cell("scope", 3400.0, 850.0, partitions=64),
    ]
    text = claim_pages.write(cells, tmp_path)
    assert "| java | 1000 | 100 | 1,000 | 970 | 0.97 | 0.97 to 0.97 |" in text
    assert "| java | 10 | 1 | 3 | 31.5 | 28.5 | 28.5 to 28.5 |" in text
    assert "| java | 100 | 10 | 1 | 1.25 | 1.25 | 1.25 to 1.25 |" in text
    assert "| java | 64 | 3,400 | 850 | 0.25 | 0.25 to 0.25 | 14 → 62 | 4 → 176 |" in text
    assert (tmp_path / "transactions.md").read_text() == text
    for claim in ("throughput", "cost", "isolation", "scope"):
        assert "<svg" in (tmp_path / f"{claim}.svg").read_text()
    assert f"partitions, {SPREAD:,} records" in (tmp_path / "cost.svg").read_text()
