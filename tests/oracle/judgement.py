"""The verdict on a run: each rule in its turn, the more telling ones first, since one cause has one class."""

from tests.oracle import coordinators, effects, order, protection, totals, wholeness, witnesses
from tests.oracle.case import Case, Verdict
from tests.oracle.counting import Counting
from tests.oracle.inputs import Inputs
from tests.oracle.positions import Positions
from tests.oracle.stages import stages
from tests.oracle.zombies import Zombies
from tests.rundata import RunData


def judge(run: RunData) -> Verdict:
    case = Case(run)
    services = stages(case)
    wholeness.judge(case, services)
    worked = effects.Effects(case, services)
    zombies = Zombies(case, services)
    coordinators.judge(case)
    witnesses.readers(case)
    counting = Counting(case, Inputs(case), worked)
    effects.acknowledged(case, worked, services, counting.lost)
    bare = protection.judge(case, services, counting)
    touched = counting.touched()
    if case.pipeline.commits and not case.pipeline.in_database:
        touched |= Positions(case, services, worked, zombies, counting, bare).touched
    coordinators.sequences(case, touched)
    order.judge(case, counting)
    totals.judge(case)
    witnesses.replicas(case)
    witnesses.open_transactions(case)
    witnesses.history(case, services)
    return case.verdict
