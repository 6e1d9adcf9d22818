"""The database in which the workers or the application of a run keep what they write, by the key `workload.database`.

- `sqlite`: a file in the run folder.
- `postgresql`: PostgreSQL in a container of the cluster, which each worker reaches on its own lane.
- `jdbc:postgresql:…`: another PostgreSQL, which faults do not reach.
"""

from pathlib import Path

from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.model.databases import POSTGRESQL, SQLITE, SQLITE_URL
from onceproof.harness.model.plan import Plan

_FILE = "database.sqlite"


def url(plan: Plan, cluster: Cluster, folder: Path, lane: int = topology.OBSERVER_LANE) -> str:
    """Return the JDBC URL of the database for the owner of a lane. `folder` is the run folder."""
    database = plan.scenario.workload.database
    if database == SQLITE:
        return f"{SQLITE_URL}{folder.absolute() / _FILE}"
    if database == POSTGRESQL:
        return topology.database(cluster.address.ports, lane)
    return database


def of_cluster(plan: Plan) -> bool:
    """Return whether the run needs PostgreSQL in a container of the cluster."""
    return plan.scenario.workload.database == POSTGRESQL
