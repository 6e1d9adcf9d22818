"""Writes results as junit.xml, which CI systems show."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from onceproof.harness.base.text import shown


@dataclass(frozen=True, kw_only=True)
class Case:
    """A test case. `failure` says why it failed, `skipped` why it did not run; `text` has the details of a failure."""

    name: str
    failure: str = ""
    text: str = ""
    skipped: str = ""


def junit(name: str, cases: Sequence[Case]) -> str:
    """Return a test suite with these cases as XML."""
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)))
    suite.set("failures", str(sum(bool(each.failure) for each in cases)))
    suite.set("skipped", str(sum(bool(each.skipped) for each in cases)))
    for each in cases:
        case = ElementTree.SubElement(suite, "testcase", classname="onceproof", name=shown(each.name))
        if each.skipped:
            ElementTree.SubElement(case, "skipped", message=shown(each.skipped))
        elif each.failure:
            ElementTree.SubElement(case, "failure", message=shown(each.failure)).text = shown(each.text)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, encoding="unicode")}\n'
