"""How host functions are declared: by their own name, with the types that WebAssembly knows.

``i`` is an i32 and ``I`` an i64, both without sign as Python sees them. A pointer is an i32. Bytes go in and out as a
span, an i64 that holds the pointer below and the length above (``sp-runtime-interface``, pointer-size).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

Run = Callable[..., int | None]
"""Takes the ``HostCall`` and its arguments; gives a number where the function has a result."""

F = TypeVar("F", bound=Callable[..., Any])


class HostFunction(NamedTuple):
    """A host function: what it takes and gives (a type letter for each), and what it does."""

    name: str
    parameters: str
    result: str
    run: Run


_FUNCTIONS: dict[str, HostFunction] = {}

HOST_FUNCTIONS: Mapping[str, HostFunction] = MappingProxyType(_FUNCTIONS)
"""All host functions by name, once the modules of this folder are imported (``host.everything``)."""


def declare(name: str, parameters: str, result: str, run: Run) -> None:
    """Declare a host function: the types that it takes, and that of its result if it has one."""
    assert name not in _FUNCTIONS, f"{name} is declared twice"
    assert set(parameters) <= {"i", "I"}, name
    assert result in {"", "i", "I"}, name
    _FUNCTIONS[name] = HostFunction(name, parameters, result, run)


def host_function(parameters: str = "", result: str = "") -> Callable[[F], F]:
    """Declare a host function under the decorated function's name."""

    def declared(run: F) -> F:
        declare(run.__name__, parameters, result, run)
        return run

    return declared
