"""A kind of vector: how its vectors are made from a seed, and how one is computed anew.

Law: what a vector expects is computed by ``recomputed`` from what it gives, when it is made and when it is checked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from relaycast.vectors.vector import Vector

Made = Iterable[tuple[str, Vector]]
"""Vectors in their order, each with the name of its file, without a suffix."""


@dataclass(frozen=True, slots=True)
class VectorKind:
    """The vectors of the folder ``name``; ``vector`` is the structure of one of them, or the union of several."""

    name: str
    vector: Any
    made: Callable[[int], Made]
    recomputed: Callable[[Any], Vector]
    """Return the vector with what it expects computed from what it gives."""

    def difference(self, vector: Vector) -> str:
        """Return where ``vector`` expects something else than is computed, empty where nothing differs."""
        try:
            computed = self.recomputed(vector)
        except Exception as error:  # a damaged vector may raise anything
            return f"cannot be computed: {type(error).__name__}: {error}"
        return first_difference(msgspec.to_builtins(vector), msgspec.to_builtins(computed))


def first_difference(given: Any, computed: Any, path: str = "") -> str:
    """Return the first place where two pieces of JSON differ, with what stands there; empty where they are equal."""
    if isinstance(given, dict) and isinstance(computed, dict):
        inner = ((given.get(name), computed.get(name), f"{path}.{name}") for name in {**given, **computed})
    elif isinstance(given, list | tuple) and isinstance(computed, list | tuple) and len(given) == len(computed):
        inner = ((left, right, f"{path}[{at}]") for at, (left, right) in enumerate(zip(given, computed, strict=True)))
    elif given == computed:
        return ""
    else:
        return f"{path.removeprefix('.')}: the file has {_short(given)}, computed is {_short(computed)}"
    return next(filter(None, (first_difference(*both) for both in inner)), "")


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 90 else f"{text[:90]}... ({len(text)} characters)"
