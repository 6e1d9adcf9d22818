"""The second oracle: what must be said of a run, by sets and dictionaries, one record at a time.

verdict = judge(run)        findings with their places, reasons, and the word that follows

Plain on purpose. It shares no code and no rule text with the verifiers, and it does not use what collect concluded:
which batches are committed, aborted or open, and which transaction holds a record, follow from the control records, the
producer ids and the coordinators' decisions. Where the two oracles differ, one of them is wrong.
"""

from tests.oracle.case import Reason, Verdict
from tests.oracle.judgement import judge

__all__ = ["Reason", "Verdict", "judge"]
