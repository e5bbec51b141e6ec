"""How much history is kept: by count, by age, by bytes; the strictest bound counts."""

from dataclasses import dataclass

from relaycast_gateway.clock import SECOND
from relaycast_gateway.log.columns import EventColumns


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest ``count`` events, those received in the last ``age_seconds``, and at most ``bytes`` of them.

    ``None`` is no bound. Law: what goes is always a prefix. An old event that stands after a young one, because the
    clock was set back, goes when the young one goes. Bytes are those of stored events, without the file's own tables.
    """

    count: int | None = None
    age_seconds: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("count", "age_seconds", "bytes"):
            bound = getattr(self, name)
            if bound is not None and not bound >= 0:
                raise ValueError(f"retention {name}: got {bound}, expected 0 or more")

    def first_kept(self, columns: EventColumns, now_ns: int) -> int:
        """Return the first event that stays; the number after the newest where none does."""
        first, end = columns.first_seq, columns.end_seq
        if self.count is not None:
            first = max(first, end - self.count)
        if self.bytes is not None:
            first = columns.first_within(first, end, self.bytes)
        if self.age_seconds is not None:
            first = columns.first_received_since(first, end, now_ns - round(self.age_seconds * SECOND))
        return first
