"""What a process tree takes of memory: all of its programs, and none of it twice."""

import subprocess
import sys

from onceproof.bench import baselines
from onceproof.harness.base import deadlines

# A tenth of a gigabyte in the parent; a fork that starts no program, and a child that is one with as much.
_HOLDS = "held = bytearray(100_000_000)"
_PARENT = f"""
import os, subprocess, sys
{_HOLDS}
copy = os.fork()
if not copy:
    sys.stdin.read()
    os._exit(0)
child = subprocess.Popen([sys.executable, "-c", "{_HOLDS}; print(0, flush=True); input()"], stdin=subprocess.PIPE)
sys.stdin.read()
child.communicate(b"0")
os.waitpid(copy, 0)
"""


def test_a_copy_that_starts_no_program_is_not_counted_and_a_program_is() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        with baselines.peak(process.pid) as highest:
            process.stdout.readline()  # the child's memory is there
            deadlines.until("a look at it", lambda: highest[0] > 200, deadline_s=10)
            process.communicate(b"0", timeout=20)
    assert highest[0] < 280
