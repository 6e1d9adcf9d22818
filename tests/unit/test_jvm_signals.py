"""The JVM of the Admin client keeps its handler of SIGSEGV when pytest disables Python's faulthandler at its end."""

from tests import fresh

_DISABLED_AFTER_THE_JVM = """
import faulthandler, signal
from pathlib import Path
from onceproof.harness.cluster.admin import start_jvm

def handled():
    masks = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return bool(int(masks["SigCgt"], 16) >> signal.SIGSEGV - 1 & 1)

faulthandler.enable()
start_jvm()
faulthandler.disable()
print(handled())
"""


def test_the_jvm_handles_sigsegv_after_faulthandler_is_disabled() -> None:
    assert fresh.printed(_DISABLED_AFTER_THE_JVM) == "True\n"
