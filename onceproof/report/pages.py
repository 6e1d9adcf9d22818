"""The templates, styles and scripts of the pages that onceproof writes or serves."""

from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent / "page"


def environment(*, autoescape: bool = True, **options: Any) -> jinja2.Environment:
    """Return the environment of the templates, in which a missing value is an error; `options` are Jinja's own."""
    loader = jinja2.FileSystemLoader(FOLDER)
    return jinja2.Environment(loader=loader, autoescape=autoescape, undefined=jinja2.StrictUndefined, **options)


def text(*names: str) -> str:
    """Return files of the pages, one after the other."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)
