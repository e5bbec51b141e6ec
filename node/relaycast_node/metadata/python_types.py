"""What Python says of types: annotations with Rust spellings, docstrings, and docstrings behind attributes.

``Annotated[int, Rust("u32")]`` is a u32, ``bytes`` a ``Vec<u8>``, ``X | None`` an ``Option``, a list or any iterable a
``Vec``; a plain ``int`` says too little and is refused.
"""

import ast
import collections.abc
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

from msgspec import Struct

from relaycast_node.metadata.rust_syntax import Named, RustType, TupleOf, parse_type
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import ParaId, Rust, Weight

_NAMED: dict[object, str] = {
    bool: "bool",
    bytes: "Vec<u8>",
    str: "str",
    ParaId: "ParaId",
    SubscribedKey: "SubscribedKey",
    Weight: "Weight",
    Location: "Vec<u8>",
}
"""A location of XCM goes as its SCALE bytes: its type has more variants than all others together."""

_VECTORS = frozenset({list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection})


def rust_type_of(annotation: object, add_class: Callable[[type], None]) -> RustType:  # noqa: PLR0911 - one for each kind
    """Return the Rust type of a Python annotation; dataclasses are told to ``add_class``.

    Raises ``TypeError`` for an annotation that says too little.
    """
    named, origin, arguments = _NAMED.get(annotation), get_origin(annotation), get_args(annotation)
    if named is not None:
        return parse_type(named)
    if origin is Annotated:
        spelled = next((it for it in arguments[1:] if isinstance(it, Rust)), None)
        return rust_type_of(arguments[0], add_class) if spelled is None else parse_type(spelled)
    if origin in _VECTORS:
        return Named("Vec", (rust_type_of(arguments[0], add_class),))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return Named("Vec", (rust_type_of(arguments[0], add_class),))
        return TupleOf(tuple(rust_type_of(it, add_class) for it in arguments))
    if origin in {Union, UnionType} and len(arguments) == 2 and NoneType in arguments:
        inner = next(it for it in arguments if it is not NoneType)
        return Named("Option", (rust_type_of(inner, add_class),))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Named(annotation.__name__)
    if isinstance(annotation, type) and (issubclass(annotation, Struct) or dataclasses.is_dataclass(annotation)):
        add_class(annotation)
        return Named(annotation.__name__)
    raise TypeError(f"no Rust type is known for {annotation!r}")


def field_name(name: str) -> str:
    """Return the name that chains use: Python's keywords carry an underscore at the end."""
    return name.rstrip("_")


def docs_of(documented: object) -> tuple[str, ...]:
    """Return the lines of a docstring of its own; a dataclass without one has none."""
    text = documented.__doc__ if isinstance(documented, type) else inspect.getdoc(documented)
    if not text or (isinstance(documented, type) and text.startswith(f"{documented.__name__}(")):
        return ()
    return tuple(inspect.cleandoc(text).splitlines())


def attribute_docs(cls: type) -> dict[str, tuple[str, ...]]:
    """Return the docstrings that stand behind attributes, in the class's body or in its ``__init__``, by name."""
    found: dict[str, tuple[str, ...]] = {}
    if cls.__qualname__ == cls.__name__:
        tree: ast.AST = _classes_in(cls.__module__)[cls.__name__]
    else:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    for body in _bodies(tree):
        for statement, behind in pairwise(body):
            name = _assigned(statement)
            if name and isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
                found[name] = tuple(inspect.cleandoc(str(behind.value.value)).splitlines())
    return found


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Iterate over the bodies of a class and of its ``__init__``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.body
            yield from (it.body for it in node.body if isinstance(it, ast.FunctionDef) and it.name == "__init__")
            return


@cache
def _classes_in(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a module by name; it is read once for all of them, which is most of the work."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _assigned(statement: ast.stmt) -> str | None:
    target = (
        statement.targets[0]
        if isinstance(statement, ast.Assign)
        else statement.target
        if isinstance(statement, ast.AnnAssign)
        else None
    )
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None
