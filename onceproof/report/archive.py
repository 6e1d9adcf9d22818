"""The runs in a folder: what each was, on which versions, and how it ended.

runs(Path("runs"))    the runs in it, and in the folders of batches, soaks and matrices one level below
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import results

NO_RESULTS = "(no results)"


@dataclass(frozen=True, kw_only=True)
class Archived:
    """A run in a folder of runs.

    `id` is its path below that folder, `began` its time as in the folder's name, `headline` the verdict in one line,
    and `verdict` its word; both say so if the run has no results. `as_expected` is None then.
    """

    id: str
    folder: Path
    name: str
    seed: str
    began: str
    headline: str = NO_RESULTS
    verdict: str = "none"
    as_expected: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def kafka(self) -> str:
        """The Kafka release; empty if it is not known."""
        return self.versions.get("kafka", "")

    @property
    def client(self) -> str:
        """The client of the workers; empty if it is not known."""
        return self.versions.get("workers' client", "") or self.versions.get("client", "")


def runs(parent: Path) -> Iterator[Archived]:
    """Yield each run at most two levels below a folder."""
    return (_read(folder, parent) for folder in _folders(parent))


def find(parent: Path, id: str) -> Archived | None:
    """Return the run with this id; None if `runs` has no such run."""
    return next((_read(folder, parent) for folder in _folders(parent) if _id(folder, parent) == id), None)


def _folders(parent: Path) -> Iterator[Path]:
    """Yield the folders of runs. Links are left out, since `latest` is one of the others."""
    for plan in [*parent.glob("*/plan.json"), *parent.glob("*/*/plan.json")]:
        if not any(each.is_symlink() for each in (plan.parent, plan.parent.parent)):
            yield plan.parent


def _id(folder: Path, parent: Path) -> str:
    return folder.relative_to(parent).as_posix()


def _read(folder: Path, parent: Path) -> Archived:
    named, _, began = folder.name.rpartition("-")
    name, _, seed = named.rpartition("-")
    try:
        judged = results.read(folder / "results.json")
    except BadInput:
        return Archived(id=_id(folder, parent), folder=folder, name=name, seed=seed, began=began)
    return Archived(
        id=_id(folder, parent),
        folder=folder,
        name=judged.name,
        seed=str(judged.seed),
        began=began,
        headline=judged.headline,
        verdict=judged.verdict,
        as_expected=judged.as_expected,
        versions=judged.versions,
    )
