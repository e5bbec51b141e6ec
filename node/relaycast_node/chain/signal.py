"""A list of callbacks that hear of something."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Signal(Generic[T]):
    """Calls all who are connected, in the order in which they came; they may come and go meanwhile."""

    __slots__ = ("_callbacks",)

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[T], None]] = {}

    def connect(self, callback: Callable[[T], None]) -> Callable[[], None]:
        """Let ``callback`` hear from now on; call what is returned to end that."""
        token = object()
        self._callbacks[token] = callback
        return lambda: self._callbacks.pop(token, None) and None

    def emit(self, value: T) -> None:
        for callback in list(self._callbacks.values()):
            callback(value)

    def __len__(self) -> int:
        return len(self._callbacks)
