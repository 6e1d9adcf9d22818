"""The JVM compiles for few records or for many, is replaced when many follow on few, and a call may be interrupted."""

import json

from tests import fresh

# Prints of three sessions whether their JVM optimizes, its process, and whether queries are compiled.
_SESSIONS = """
import json, signal
from onceproof.verifiers.evidence import spark as sessions

def about(records):
    spark = sessions.session("local[1]", records=records)
    runtime = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    optimizes = not any("TieredStopAtLevel" in each for each in runtime.getInputArguments())
    return optimizes, runtime.getPid(), spark.conf.get("spark.sql.codegen.wholeStage"), spark.range(9).count()

print(json.dumps([about(records) for records in (10, 10**9, 10)]))
signal.setitimer(signal.ITIMER_REAL, 0.5)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    sessions.session()._jvm.java.lang.Thread.sleep(60_000)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_session_for_many_records_replaces_one_for_few_and_can_be_interrupted() -> None:
    sessions, interrupted = fresh.printed(_SESSIONS).splitlines()
    few, many, again = json.loads(sessions)
    assert few[0] is False and few[2] == "false"
    assert many[0] is True and many[2] == "true"
    assert few[1] != many[1] and again == many
    assert few[3] == many[3] == 9
    assert interrupted == "interrupted"
