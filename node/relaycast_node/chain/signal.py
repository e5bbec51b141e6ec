"""A list of callbacks that hear of something."""

import logging
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from relaycast_node.line_rate import LineRate

T = TypeVar("T")

log = logging.getLogger(__name__)
log.addFilter(LineRate())


class Signal(Generic[T]):
    """Calls all connected callbacks in order; they may connect and disconnect meanwhile.

    An exception in one is logged and counted in ``failures``; the others and the emitter continue.
    """

    __slots__ = ("_callbacks", "failures")

    def __init__(self) -> None:
        self.failures = 0
        self._callbacks: dict[object, Callable[[T], None]] = {}

    def connect(self, callback: Callable[[T], None]) -> Callable[[], None]:
        """Let ``callback`` hear from now on; call what is returned to end that."""
        token = object()
        self._callbacks[token] = callback
        return lambda: self._callbacks.pop(token, None) and None

    def emit(self, value: T) -> None:
        self.failures += call_all(list(self._callbacks.values()), value)

    def __len__(self) -> int:
        return len(self._callbacks)


def call_all(callbacks: Iterable[Callable[[T], None]], value: T) -> int:
    """Call every callback, even if others fail; log the failures, and return their number."""
    failures = 0
    for callback in callbacks:
        try:
            callback(value)
        except Exception as error:
            failures += 1
            log.error("a listener failed: %s: %s", type(error).__name__, error)
            log.debug("a listener failed", exc_info=error)
    return failures
