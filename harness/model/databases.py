"""Addresses of databases: the JDBC URLs that scenarios and workers have.

    jdbc:postgresql://127.0.0.1:5432/shop?user=shop&password={env:SHOP_PASSWORD}
    jdbc:sqlite:/tmp/runs/database-worker-killed-1/database.sqlite

A URL may name environment variables, since a scenario, its plan and its report are no place for a password.
"""

import os
import re

from onceproof.harness.base.errors import BadInput

SQLITE, POSTGRESQL = "sqlite", "postgresql"  # the databases that a run has by itself
OF_THE_RUN = "{database}"  # the database of a run, in the description of an application
SQLITE_URL, POSTGRESQL_URL = "jdbc:sqlite:", "jdbc:postgresql:"
_ENVIRONMENT = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def address(url: str) -> str:
    """Return a URL with the values of the environment variables that it names. Raises BadInput if one is not set."""
    missing = next((name for name in _ENVIRONMENT.findall(url) if name not in os.environ), None)
    if missing is not None:
        raise BadInput(f"{{env:{missing}}}: this environment variable is not set")
    return _ENVIRONMENT.sub(lambda found: os.environ[found[1]], url)
