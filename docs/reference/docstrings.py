"""Docstrings as Markdown: doctest lines become blocks of code. An extension of griffe, which reads the packages."""

import re
from typing import Any

from griffe import Extension, Object

DOCTEST = re.compile(r"^(?:>>>.*\n?(?:(?!\s*$|>>>).*\n?)*)+", re.MULTILINE)


class Doctests(Extension):
    """Puts fences around lines that begin with ``>>>``, which Markdown takes for quotations, and what follows them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Return the docstring with its doctests in fences."""
    return DOCTEST.sub(lambda found: f"```python\n{found[0].rstrip()}\n```\n", docstring)
