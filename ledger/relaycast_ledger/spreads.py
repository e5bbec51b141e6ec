"""How sizes and times of many blocks are told: percentiles, parts of a limit, and the fullest block."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil

from msgspec import Struct


class Spread(Struct, frozen=True):
    """Percentiles by nearest rank, and the sum.

    A run's percentiles are of the blocks after its warm-up, the sum is of all blocks.
    """

    p50: int
    p99: int
    max: int
    total: int


class Latency(Struct, frozen=True):
    """Relay blocks from a publication to its delivery; ``None`` where nothing was delivered."""

    p50: int | None
    p99: int | None
    max: int | None

    def told(self, *names: str) -> str:
        """Return some of them with a stroke between, or a dash where nothing was delivered."""
        values = [getattr(self, name) for name in names]
        return "-" if None in values else "/".join(map(str, values))

    def later_than(self, other: "Latency") -> bool:
        """Tell whether the slowest here, or the p99, took longer than there; not where nothing was delivered."""
        pairs = ((self.p99, other.p99), (self.max, other.max))
        return any(ours is not None and theirs is not None and ours > theirs for ours, theirs in pairs)


class Share(Struct, frozen=True):
    """Parts of the largest PoV: 1 is a full block, more does not fit."""

    p50: float
    p99: float
    max: float


class FullBlock(Struct, frozen=True, kw_only=True):
    """The fullest block of a subscriber: what it carries, by cause, and the time that it takes to compute."""

    block: int
    number: int
    pov_bytes: int
    compressed_bytes: int | None
    """``None`` where it was not compressed: it fits in any case."""

    max_pov_bytes: int
    ref_time: int
    max_ref_time: int
    by_cause: dict[str, int]
    """Bytes of ``pov_bytes``: ``static``, the causes of ``PublisherCost`` (``pubsub`` where no account is kept),
    ``own``, ``messages``, and ``rest``, which is the header and the lengths between nodes."""

    @property
    def is_oversize(self) -> bool:
        """Whether the relay chain would refuse it."""
        return self.load > 1

    @property
    def sent_bytes(self) -> int:
        """The compressed bytes, or, where they are not known, those before compression."""
        return self.pov_bytes if self.compressed_bytes is None else self.compressed_bytes

    @property
    def load(self) -> float:
        """How much of its limit it takes, in the dimension that decides."""
        return max(self.sent_bytes / self.max_pov_bytes, self.ref_time / self.max_ref_time)


def spread(values: Sequence[int], *, after: int = 0) -> Spread:
    """Return the spread of ``values``, percentiles without the first ``after``; all zero when there are none."""
    ordered = sorted(values[after:])
    return Spread(rank(ordered, 50), rank(ordered, 99), rank(ordered, 100), sum(values))


def latency(values: Iterable[int]) -> Latency:
    """Return the spread of latencies in blocks."""
    return counted_latency(Counter(values))


def counted_latency(counts: Mapping[int, int]) -> Latency:
    """Return the spread of latencies in blocks, of which it is counted how often each comes."""
    ordered = sorted(counts)
    ends = list(accumulate(counts[value] for value in ordered))
    if not ends:
        return Latency(None, None, None)

    def at(percent: int) -> int:
        return ordered[bisect_left(ends, max(1, ceil(ends[-1] * percent / 100)))]

    return Latency(at(50), at(99), at(100))


def share(sizes: Spread, allowed: int) -> Share:
    """Return sizes as parts of what is ``allowed``, to six places."""
    return Share(*(round(size / allowed, 6) for size in (sizes.p50, sizes.p99, sizes.max)))


def rank(ordered: Sequence[int], percent: int) -> int:
    """Return the value at or below which ``percent`` of the values lie, by nearest rank; 0 of no values."""
    if not ordered:
        return 0
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
