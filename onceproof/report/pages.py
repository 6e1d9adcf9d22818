"""The templates, styles and scripts of the pages that onceproof writes or serves."""

from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent / "page"


def environment(*, autoescape: bool = True, **options: Any) -> jinja2.Environment:
    """Return the environment of the templates, in which a missing value is an error; `options` are Jinja's own."""
    loader = jinja2.FileSystemLoader(FOLDER)
    made = jinja2.Environment(loader=loader, autoescape=autoescape, undefined=jinja2.StrictUndefined, **options)
    made.filters["sentence"] = sentence
    return made


def sentence(text: str) -> str:
    """Return a statement as a sentence. A first word that is a name, such as `auto.offset.reset`, is not changed."""
    if not text:
        return ""
    named = not text.split(maxsplit=1)[0].isalpha()
    return f"{text if named else text[:1].upper() + text[1:]}."


def text(*names: str) -> str:
    """Return files of the pages, one after the other."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)
