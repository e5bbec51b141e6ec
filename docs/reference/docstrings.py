"""Docstrings and fields as the reference shows them. Extensions of griffe, which reads the packages."""

import re
from typing import Any

from griffe import Attribute, Class, ExprCall, Extension, Function, Object

DOCTEST = re.compile(r"^(?:>>>.*\n?(?:(?!\s*$|>>>).*\n?)*)+", re.MULTILINE)

CLASS = re.compile(r"(\w+\.)*[A-Z]\w*|bool|bytes|dict|float|int|list|set|str|tuple")


class Doctests(Extension):
    """Puts fences around lines that begin with ``>>>``, which Markdown takes for quotations, and what follows them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


class Fields(Extension):
    """Shows what ``__init__`` puts into a field by its type: ``self.reason = reason`` as ``reason: str``.

    A field that is made there, as by ``Ledger(...)``, shows its class. How it is made is no part of the interface.
    """

    def on_class(self, *, cls: Class, **_: Any) -> None:
        begin = cls.members.get("__init__")
        if not isinstance(begin, Function):
            return
        lines = range(begin.lineno or 0, (begin.endlineno or 0) + 1)
        fields = [it for it in cls.members.values() if isinstance(it, Attribute) and it.value is not None]
        for field in fields:
            if field.lineno not in lines:
                continue
            if str(field.value) in begin.parameters:
                field.annotation = field.annotation or begin.parameters[str(field.value)].annotation
            elif isinstance(field.value, ExprCall) and CLASS.fullmatch(str(field.value.function)):
                field.annotation = field.annotation or field.value.function
            field.value = None


def fenced(docstring: str) -> str:
    """Return the docstring with its doctests in fences."""
    return DOCTEST.sub(lambda found: f"```python\n{found[0].rstrip()}\n```\n", docstring)
