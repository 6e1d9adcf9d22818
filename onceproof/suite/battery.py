"""Execute a battery: one pipeline or application under each of the faults that an expert would try.

    onceproof battery orders.toml

Each run is an ordinary scenario: the file with the faults of one plan below it. It is written next to the page, and
`onceproof run` repeats it. The page has the verdict of each plan, how long it took until every worker had committed
again, and what the requests of the clients break (`docs/lints.md`).
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.spec import SEEN_PHASES
from onceproof.harness.record.events import FaultInjected, Outcome
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Lint, Results
from onceproof.run.run import Run
from onceproof.suite import batch

_BROUGHT = ("faults", "random", "expect", "bug")
_NAME = re.compile(r"^name\s*=.*$", re.MULTILINE)


def _fault(name: str, *keys: str) -> str:
    return "\n".join(("[[faults]]", f'name = "{name}"', *keys))


def _at(phase: str) -> str:
    return f'when = {{ worker = 0, phase = "{phase}", count = 6 }}'


def _killed(phase: str) -> str:
    return _fault("kill-worker", 'target = "worker-0"', _at(phase), "lasts_s = 2")


def _zombie(phase: str, *past: str) -> str:
    return _fault("zombie", _at(phase), f"past = [{', '.join(past)}]", 'fenced = "any"')


# The name of a plan → its tables. What a plan with @ does begins at that phase of a transaction of the first worker.
# {output} is the first output topic of the workload.
PLANS: Mapping[str, str] = MappingProxyType(
    {
        "no-faults": "",
        **{f"kill-worker@{phase}": _killed(phase) for phase in SEEN_PHASES},
        "zombie@produced": _zombie("produced", '"session"'),
        "zombie@before-commit": _zombie("before-commit", '"transaction"'),
        "zombie@offsets-sent": _zombie("offsets-sent", '"session"', '"transaction"'),
        "drop-response@before-commit": _fault(
            "drop-response", 'target = "worker-0"', 'api = "EndTxn"', _at("before-commit")
        ),
        "cut@begun": _fault("partition", 'target = "worker-0"', 'mode = "cut"', _at("begun"), "lasts_s = 4"),
        "stall@produced": _fault("partition", 'target = "worker-0"', 'mode = "stall"', _at("produced"), "lasts_s = 4"),
        "kill-coordinator@before-commit": _fault(
            "kill", 'target = "transaction-coordinator:worker-0"', _at("before-commit"), "lasts_s = 4"
        ),
        "stop-group-coordinator": _fault("stop", 'target = "group-coordinator"', "at_s = 3", "lasts_s = 3"),
        "kill-leader": _fault("kill", 'target = "leader:input/0"', "at_s = 3", "lasts_s = 4"),
        "roll-brokers": _fault("stop", 'target = "every-broker"', "at_s = 3", "lasts_s = 1"),
        "rebalances": _fault("rebalances", "at_s = 3", "lasts_s = 6"),
        "refuse-writes": _fault("refuse-writes", 'topic = "{output}"', "at_s = 3", "lasts_s = 3"),
        "delete-records": _fault("delete-records", 'to = "behind"', "at_s = 5"),
        "drawn-1": "[random]\nperiods = 1\nperiod_s = 20",
        "drawn-2": "[random]\nperiods = 1\nperiod_s = 20",
    }
)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The result of one plan. `recovery_s` is None if there was no fault, or if a worker did not commit again."""

    plan: str
    headline: str
    verdict: str
    says: list[str]
    recovery_s: float | None
    seconds: float
    lints: list[Lint]
    repeat: str
    report: Path


@dataclass(kw_only=True)
class Battery:
    """The plans of a battery that have been tried so far."""

    name: str
    tried: list[Tried] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Return whether every run was valid, and no request of a client broke a rule."""
        return all(each.verdict == "valid" and not each.lints for each in self.tried)

    def page(self) -> str:
        """Return the battery in Markdown: a table of its plans, its lints, and how to repeat what was not valid."""
        valid = sum(each.verdict == "valid" for each in self.tried)
        took_s = sum(each.seconds for each in self.tried)
        lines = [
            f"# {self.name}: {valid} of {len(self.tried)} runs valid",
            "",
            f"All runs together took {took_s / 60:.0f} min. Recovery is the time from the first fault until every "
            "worker had committed a transaction again.",
            "",
            "| plan | verdict | recovery | report |",
            "|---|---|---|---|",
            *(
                f"| {each.plan} | {each.headline} | {_seconds(each.recovery_s)} | [report]({each.report}) |"
                for each in self.tried
            ),
            "",
            "## What the requests break",
            "",
            *_lints(self.tried),
        ]
        if wrong := [each for each in self.tried if each.verdict != "valid"]:
            lines += ["", "## To repeat what was not valid", "", "```console"]
            lines += [line for each in wrong for line in (*(f"# {says}" for says in each.says), f"$ {each.repeat}")]
            lines += ["```"]
        return "\n".join(lines) + "\n"


def _seconds(recovery_s: float | None) -> str:
    return "" if recovery_s is None else f"{recovery_s:.1f} s"


def _lints(tried: Iterable[Tried]) -> list[str]:
    """Return the lints of all runs in Markdown, each once."""
    found = {lint.name: lint for each in tried for lint in each.lints}
    if not found:
        return ["Nothing."]
    rows = (f"| {each.name} | {each.kip} | {each.says} |" for each in found.values())
    return ["| lint | source | what can go wrong |", "|---|---|---|", *rows]


def write(file: Path, target: Path, wanted: Sequence[str]) -> list[tuple[str, Path]]:
    """Write the scenario of each plan, and return the plans with their files. `file` is what is tried.

    Raises BadInput when there is no such plan, when the file has faults or expectations of its own, or when it cannot
    be run under one of the plans.
    """
    texts = {plan: text(file, plan) for plan in wanted}
    files_of = [(plan, target / f"{_plain(plan)}.toml") for plan in wanted]
    for plan, path in files_of:
        files.write(path, texts[plan])
    return files_of


def suited(loaded: Scenario) -> list[str]:
    """Return the plans that fit a scenario: phases and refused writes need transactions, the latter an output topic."""
    work = loaded.pipeline
    without = {
        *(plan for plan in PLANS if "@" in plan and not work.claim.transactional),
        *(["refuse-writes"] if not (work.topics and work.claim.transactional) else []),
        *(["delete-records"] if work.claim.position == "none" else []),
    }
    return [plan for plan in PLANS if plan not in without]


def text(file: Path, plan: str) -> str:
    """Return the scenario of a plan as TOML. Raises BadInput as `write` does."""
    if plan not in PLANS:
        raise BadInput(f"{plan}: no such plan{suggestion(plan, PLANS)}; allowed: {', '.join(PLANS)}")
    loaded = scenario.load(file)
    whole = file.read_text(encoding="utf-8")
    own = tomllib.loads(whole)
    for key in _BROUGHT:
        if key in own:
            raise BadInput(f"{file}: {key}: a battery brings its own faults and expectations; leave this table out")
    named = _NAME.sub(f'name = "{loaded.name}-{_plain(plan)}"', whole, count=1)
    tables = PLANS[plan].replace("{output}", next(iter(loaded.pipeline.topics), ""))
    made = f"{named.rstrip()}\n\n{_recorded(loaded)}{tables}".rstrip() + "\n"
    scenario.parse(tomllib.loads(made), where=f"{file}, with the plan {plan}")
    return made


def _plain(plan: str) -> str:
    return plan.replace("@", "-at-")


def _recorded(loaded: Scenario) -> str:
    """Return the table that lets requests be recorded, unless the scenario has a table of that name."""
    return "" if loaded.app is not None or loaded.collect.requests else "[collect]\nrequests = true\n\n"


def battery(
    name: str,
    plans: Sequence[tuple[str, Scenario]],
    *,
    seed: int,
    options: batch.Options,
    say: Callable[[str], None],
) -> Battery:
    """Try the plans on one cluster, and return what came of them.

    `name` is the name of what is tried, and `plans` has the scenario of each plan. `battery.md` in the folder of
    `options` is rewritten after each run, and `say` gets a line about it. Raises HarnessError when a cluster does not
    come up.
    """
    done = Battery(name=name)
    plan_of = {each.name: plan for plan, each in plans}
    runs = [(each, seed + number) for number, (_, each) in enumerate(plans)]

    def after(run: Run, results: Results, line: batch.Line) -> None:
        plan = plan_of[line.scenario]
        done.tried.append(
            Tried(
                plan=plan,
                headline=line.headline,
                verdict=line.verdict,
                says=line.reasons,
                recovery_s=recovery_s(run.history.events(), run.plan.scenario.workload.workers),
                seconds=line.seconds,
                lints=list(results.lints or ()),
                repeat=options.command(run.plan.scenario, line.seed),
                report=Path(run.folder.name) / "report.html",
            )
        )
        files.write(options.folder / "battery.md", done.page())
        say(f"{len(done.tried)}/{len(plans)}  {plan}: {line.headline}")

    batch.run(runs, options, after)
    return done


def recovery_s(events: Events, workers: int) -> float | None:
    """Return the seconds from the first fault until each worker had committed a transaction; None if one did not."""
    fault = events.first(FaultInjected)
    if fault is None:
        return None
    first: dict[str, float] = {}
    for each in events.of(Outcome, type="ok"):
        if each.at > fault.at:
            first.setdefault(each.source, each.at)
    return round(max(first.values()) - fault.at, 1) if len(first) == workers else None
