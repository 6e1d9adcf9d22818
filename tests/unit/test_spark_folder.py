"""Spark's temporary files: below the home, in a folder of the process, which removes it. Paths that are not ASCII."""

import json
from pathlib import Path

from onceproof.harness.base import paths
from tests import fresh

# Reads a table, prints what the JVM took for its folders and what is in them, and ends without stopping the session.
_SESSION = """
import json, os, sys
import pyarrow as pa, pyarrow.parquet
from onceproof.verifiers.evidence import spark as sessions

pa.parquet.write_table(pa.table({"x": [1, 2]}), sys.argv[1])
spark = sessions.session("local[1]")
java = spark.sparkContext._jvm.java.lang.System.getProperty
folders = [java("java.io.tmpdir"), java("user.dir"), spark.conf.get("spark.local.dir")]
told = {"folders": folders, "rows": spark.read.parquet(sys.argv[1]).count(), "names": os.listdir(folders[0])}
print(json.dumps(told | {"pid": os.getpid()}))
"""


def test_a_session_works_with_any_path_and_leaves_nothing(tmp_path: Path) -> None:
    """Java encodes the names of files as Python does even if `LC_ALL=C`, and a home may have spaces and quotes."""
    home = tmp_path / "hé \"m'e"
    home.mkdir()
    (home / "jars").symlink_to(paths.jars_dir().absolute())
    environment = {"LC_ALL": "C", "ONCEPROOF_HOME": str(home)}
    told = json.loads(fresh.printed(_SESSION, str(tmp_path / "é.parquet"), environment=environment))
    assert told["folders"] == [str(home / "spark" / str(told["pid"]))] * 3
    assert told["rows"] == 2
    assert any(name.startswith("blockmgr-") for name in told["names"])
    assert list((home / "spark").iterdir()) == []
