"""The method table: functions by the names that clients call, aliases among them.

A module of a group makes one ``MethodGroup`` and registers its functions. A method's function takes the context and
the parameters, a subscription's function the subscription before these, and a session's method the session.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from relaycast_node.rpc.parameters import Expected, expected_of

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """One method; a subscription names the ``notification`` that it sends."""

    call: Callable[..., Any]
    expected: tuple[Expected, ...]
    notification: str = ""
    unsubscribes: bool = False
    takes_session: bool = False


class MethodGroup:
    """The methods of one group."""

    def __init__(self) -> None:
        self.methods: dict[str, RpcMethod] = {}

    def method(self, *names: str) -> Callable[[F], F]:
        """Register a function under its name and its aliases."""

        def register(function: F) -> F:
            self._add(names, RpcMethod(function, expected_of(function, skip=1)))
            return function

        return register

    def session_method(self, *names: str) -> Callable[[F], F]:
        """Register a function that works on state of the same client's session."""

        def register(function: F) -> F:
            self._add(names, RpcMethod(function, expected_of(function, skip=2), takes_session=True))
            return function

        return register

    def subscription(self, *names: str, notification: str, unsubscribe: tuple[str, ...]) -> Callable[[F], F]:
        """Register a function that subscribes, and the methods that end what it began."""

        def register(function: F) -> F:
            self._add(names, RpcMethod(function, expected_of(function, skip=2), notification))
            self._add(unsubscribe, RpcMethod(function, (), notification, unsubscribes=True))
            return function

        return register

    def _add(self, names: Iterable[str], method: RpcMethod) -> None:
        for name in names:
            assert name not in self.methods, f"{name} is registered twice"
            self.methods[name] = method


class MethodTable:
    """The methods of several groups."""

    def __init__(self, groups: Iterable[MethodGroup]) -> None:
        self._methods: dict[str, RpcMethod] = {}
        for group in groups:
            twice = self._methods.keys() & group.methods.keys()
            assert not twice, f"registered twice: {twice}"
            self._methods |= group.methods
        self.names = sorted(self._methods)

    def find(self, name: str) -> RpcMethod | None:
        return self._methods.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
