"""Records for tests of matching."""

from collections.abc import Callable
from typing import Generic, TypeVar

from relaycast_gateway.icrc16 import text
from relaycast_gateway.record import EVERYBODY, EventRecord

Made = TypeVar("Made")


def record(seq: int, namespace: str = "io.relaycast.data.published") -> EventRecord:
    return EventRecord(
        seq=seq,
        event_id=seq,
        prev_id=None,
        pub_id=seq,
        occurred_ns=seq,
        received_ns=seq,
        namespace=namespace,
        source=b"\x01",
        subject=None,
        data=text("x"),
        headers=(),
        visibility=EVERYBODY,
    )


class Noting(Generic[Made]):
    """Calls a function of a record, and notes which records it was called for."""

    def __init__(self, make: Callable[[EventRecord], Made]) -> None:
        self._make = make
        self.seqs: list[int] = []

    def __call__(self, one: EventRecord) -> Made:
        self.seqs.append(one.seq)
        return self._make(one)
