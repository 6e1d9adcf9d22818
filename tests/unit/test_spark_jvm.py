"""The JVM compiles for few records or for many, and is replaced when many follow on few."""

import json
import os
import subprocess
import sys

_DEADLINE_S = 300
# Prints of three sessions whether their JVM optimizes, its process, and whether queries are compiled.
_SESSIONS = """
import json
from onceproof.verifiers.evidence import spark as sessions

def about(records):
    spark = sessions.session("local[1]", records=records)
    runtime = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    optimizes = not any("TieredStopAtLevel" in each for each in runtime.getInputArguments())
    return optimizes, runtime.getPid(), spark.conf.get("spark.sql.codegen.wholeStage"), spark.range(9).count()

print(json.dumps([about(records) for records in (10, 10**9, 10)]))
"""


def test_a_session_for_many_records_replaces_one_for_few() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SESSIONS],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    few, many, again = json.loads(done.stdout)
    assert few[0] is False and few[2] == "false"
    assert many[0] is True and many[2] == "true"
    assert few[1] != many[1] and again == many
    assert few[3] == many[3] == 9
