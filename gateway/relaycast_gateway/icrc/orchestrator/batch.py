"""Batches: results by position, and what refuses an item or ends a batch.

Law: an answer holds one result for each item of a prefix of the batch, in order, and none beyond. It is shorter than
the batch only where its last result is ``GenericBatchError``, which says why nothing after it was looked at.
Source: ICRC-7, "Batch Update Methods", to which ICRC-72 refers.

::

    Exception
    ├── ItemRefused     an item gets an error of its own; the batch goes on
    └── BatchEnded      an item that no later one can pass either: the batch ends there
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TypeVar

from relaycast_gateway.candid import Variant

Item = TypeVar("Item")


class ErrorCode(IntEnum):
    """Numbers of a ``GenericError``."""

    MEMO_TOO_LONG = 1
    NO_BROADCASTER = 2
    NO_REPLAYS = 3
    TOO_MANY_REPLAYS = 4
    TOO_FAST = 5
    NO_CAPABLE_PUBLISHER = 6
    ILLEGAL_STATE = 7


class ItemRefused(Exception):
    """An item of a batch is refused with a variant of its method's error type."""

    def __init__(self, error: Variant) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return str(self.error.tag) if self.error.value is None else f"{self.error.tag}: {self.error.value}"


class BatchEnded(Exception):
    """A batch ends at an item, for a reason that holds for those after it, too."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def positional(items: Sequence[Item], most: int, handle: Callable[[Item], object]) -> list[Variant]:
    """Handle the items of a batch one after the other, at most ``most``, and return their results."""
    results: list[Variant] = []
    try:
        for item in items[:most]:
            try:
                results.append(Variant("Ok", handle(item)))
            except ItemRefused as refused:
                results.append(Variant("Err", refused.error))
        if len(items) > most:
            raise BatchEnded(f"expected at most {most} items in a batch, got {len(items)}")
    except BatchEnded as ended:
        results.append(Variant("Err", Variant("GenericBatchError", ended.reason)))
    return results


def generic(code: ErrorCode, message: str) -> ItemRefused:
    """Return the refusal with a ``GenericError``."""
    return ItemRefused(Variant("GenericError", {"error_code": int(code), "message": message}))


def improper(reason: object) -> ItemRefused:
    """Return the refusal with ``ImproperConfig`` that says what was expected and what came."""
    return ItemRefused(Variant("ImproperConfig", str(reason)))


@contextmanager
def improper_unless_well_formed() -> Iterator[None]:
    """Turn a ``ValueError`` into the refusal with ``ImproperConfig``."""
    try:
        yield
    except ValueError as error:
        raise improper(error) from None


def checked_memo(memo: object, most: int) -> bytes | None:
    """Return the memo of an item, ``None`` where it has none; ``ItemRefused`` where it is longer than ``most``."""
    if memo is None:
        return None
    assert isinstance(memo, bytes), memo
    if len(memo) > most:
        raise generic(ErrorCode.MEMO_TOO_LONG, f"memo: got {len(memo)} bytes, expected at most {most}")
    return memo
