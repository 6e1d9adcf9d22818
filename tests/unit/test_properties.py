"""A properties file that is read by Java itself."""

from typing import Any

import jpype
from hypothesis import given, settings
from hypothesis import strategies as st

from onceproof.harness.cluster.admin import start_jvm
from onceproof.harness.cluster.properties import properties

# A text of Java's has surrogates in pairs only.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def read_by_java(text: str) -> dict[str, str]:
    start_jvm()
    found: Any = jpype.java.util.Properties()
    found.load(jpype.java.io.StringReader(text))
    return {str(key): str(found.getProperty(key)) for key in found.stringPropertyNames()}


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_TEXTS, _TEXTS, max_size=4))
def test_keys_and_values_arrive_as_they_are(wanted: dict[str, str]) -> None:
    assert read_by_java(properties(wanted)) == wanted


def test_values_that_are_no_texts() -> None:
    assert read_by_java(properties({"a": True, "b": False, "c": 7, "d": 0.5})) == {
        "a": "true",
        "b": "false",
        "c": "7",
        "d": "0.5",
    }
