"""The tables and plots of the claims that `onceproof bench transactions` measures."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from onceproof.bench.claims import CLIENTS, SPREAD, Cell

_INK, _FAINT = "#1f2933", "#9aa5b1"
_STYLE: Any = {
    "svg.fonttype": "none",  # text remains text, which can be searched
    "svg.hashsalt": "onceproof",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
}
_SAYS = {
    "throughput": (
        "Throughput with transactions, relative to an idempotent producer without",
        "records per second, idempotent",
        "with transactions",
    ),
    "cost": ("Milliseconds that a transaction adds to the same records", "ms, idempotent", "ms, in a transaction"),
    "isolation": (
        "Time of a read_committed reader, relative to read_uncommitted",
        "s, read_uncommitted",
        "s, read_committed",
    ),
    "scope": (
        "Throughput of a producer for each partition, relative to one for the worker",
        "records per second, one producer",
        "one for each partition",
    ),
}
_COLOURS = ("#2680c2", "#d64545", "#8719e0", "#3a7d44", "#b7791f")
_AXES = {"throughput": ("interval_ms", "bytes"), "isolation": ("aborted_percent", "bytes")}
_ACROSS = {
    "throughput": "ms between two commits",
    "cost": "records, or partitions",
    "isolation": "% of records aborted",
    "scope": "partitions",
}


def write(cells: Sequence[Cell], folder: Path) -> str:
    """Write every pair, the tables and the plots of what was measured to the folder, and return the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [{**asdict(each), "effect": asdict(each.effect)} for each in cells]
    (folder / "transactions.json").write_text(json.dumps({"schema_version": 1, "cells": found}, indent=1) + "\n")
    text = ""
    for claim, (title, *_) in _SAYS.items():
        if mine := [each for each in cells if each.claim == claim]:
            text += f"## {claim}: {title}\n\n{table(mine)}\n"
            _plot(claim, mine, folder / f"{claim}.svg")
    (folder / "transactions.md").write_text(text)
    return text


def table(cells: Sequence[Cell]) -> str:
    """Return the cells of one claim as a table in Markdown: the medians, and the interval of what differs."""
    claim = cells[0].claim
    _, before, after = _SAYS[claim]
    settings = list(cells[0].setting)
    heads = ["client", *(each.replace("_", " ") for each in settings), before, after]
    heads += ["difference in ms" if claim == "cost" else "ratio", "95% interval"]
    if claim == "scope":
        heads += ["MB", "connections"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in cells:
        medians = [_number(statistics.median_high(side)) for side in zip(*each.pairs, strict=True)]
        effect = each.effect
        shown = [each.client, *map(str, each.setting.values()), *medians]
        shown += [_number(effect.median), f"{_number(effect.low)} to {_number(effect.high)}"]
        if each.peaks:
            shown += [f"{before:,.0f} → {after:,.0f}" for before, after in zip(*each.peaks, strict=True)]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _plot(claim: str, cells: Sequence[Cell], file: Path) -> None:
    """Draw the effect over the setting that grows, with a panel for each client and a line for each other setting."""
    clients = [each for each in CLIENTS if any(cell.client == each for cell in cells)]
    with plt.rc_context(_STYLE):
        figure, panels = plt.subplots(1, len(clients), figsize=(9, 3.2), sharey=True, squeeze=False)
        for panel, client in zip(panels[0], clients, strict=True):
            _lines(panel, claim, [cell for cell in cells if cell.client == client])
            panel.set_title(client, loc="left")
        panels[0][0].set_ylabel("ms" if claim == "cost" else "ratio")
        if claim != "scope":  # one line only
            panels[0][-1].legend(frameon=False)
        figure.suptitle(_SAYS[claim][0], x=0.01, ha="left", fontsize=10)
        figure.tight_layout()
        figure.savefig(file, metadata={"Date": None})
        plt.close(figure)


def _lines(panel: Axes, claim: str, cells: Sequence[Cell]) -> None:
    for number, (label, points) in enumerate(_series(claim, cells).items()):
        points = dict(sorted(points.items()))
        effects = [cell.effect for cell in points.values()]
        errors = [[each.median - each.low for each in effects], [each.high - each.median for each in effects]]
        middle = [each.median for each in effects]
        colour = _COLOURS[number % len(_COLOURS)]
        panel.errorbar(list(points), middle, yerr=errors, marker="o", ms=3, lw=1, capsize=2, color=colour, label=label)
    if claim != "isolation":
        panel.set_xscale("log")
    panel.axhline(0 if claim == "cost" else 1, color="#9aa5b1", lw=0.8)
    panel.set_xlabel(_ACROSS[claim])


def _series(claim: str, cells: Sequence[Cell]) -> Mapping[str, dict[float, Cell]]:
    """Return the lines of a plot: label → where on the horizontal axis → cell."""
    found: dict[str, dict[float, Cell]] = {}
    for cell in cells:
        setting = {name: int(value) for name, value in cell.setting.items()}
        if claim == "scope":
            found.setdefault("", {})[setting["partitions"]] = cell
        elif claim == "cost":
            if setting["partitions"] == 1:
                found.setdefault("records, on one partition", {})[setting["records"]] = cell
            if setting["records"] == SPREAD:
                found.setdefault(f"partitions, {SPREAD:,} records", {})[setting["partitions"]] = cell
        else:
            across, apart = _AXES[claim]
            found.setdefault(f"{setting[apart]:,} B", {})[setting[across]] = cell
    return found
