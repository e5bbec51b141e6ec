"""What arrives for a parachain beside pub-sub: bytes of messages in each relay block, as a scenario describes them.

Messages go first in every block, so a load decides how much of it the relay proof gets. A constant is a number; every
other shape is a table that names itself. What is drawn follows from the seed, the parachain and the relay block alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, shake_128
from math import exp
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from relaycast.scenario.load_trace import LoadTrace, read_load_trace
from relaycast_collator import Messages
from relaycast_pallets.messaging.relay_queues import MAX_MESSAGE_BYTES, MAX_WAITING_BYTES

LoadBytes = Annotated[int, Meta(ge=0, le=MAX_WAITING_BYTES)]
BlockSpan = Annotated[int, Meta(ge=1, le=1_000_000)]

CHUNK_BYTES, CHUNKS, CHUNKS_BETWEEN_BLOCKS = 1 << 14, 1 << 9, 389
"""Contents of messages: a chunk comes again after 8 MiB at the earliest, beyond the window of a compression."""

DOWNWARD, HORIZONTAL = "downward", "horizontal"


class Uniform(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="shape", tag="uniform"):
    """Anything from ``low_bytes`` to ``high_bytes``, all equally likely."""

    low_bytes: LoadBytes = 0
    high_bytes: LoadBytes


class Lognormal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="shape", tag="lognormal"):
    """Half of the blocks below ``median_bytes``, and a tail that is longer the greater ``sigma`` is."""

    median_bytes: Annotated[int, Meta(ge=1, le=MAX_WAITING_BYTES)]
    sigma: Annotated[float, Meta(gt=0, le=4)] = 1.0
    """Standard deviation of the logarithm: with 1, one block in 40 has seven times the median or more."""


class Poisson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="shape", tag="poisson"):
    """Messages that come independently of one another, ``mean_messages`` in a relay block on average."""

    mean_messages: Annotated[float, Meta(gt=0, le=700)]


class Bursts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="shape", tag="bursts"):
    """``bytes`` in each of the first ``length`` blocks of every ``every``, and ``otherwise_bytes`` in the others."""

    bytes: LoadBytes
    every: BlockSpan
    length: BlockSpan = 1
    otherwise_bytes: LoadBytes = 0


class Trace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="shape", tag="trace"):
    """What was recorded: a CSV or Parquet ``file`` with the columns ``block`` (from 1 on) and ``bytes``."""

    file: str
    """Its path is relative to the scenario file."""

    repeats: bool = False
    """Whether it begins anew behind its last block, instead of ending there."""


Load = LoadBytes | Uniform | Lognormal | Poisson | Bursts | Trace


class MessageLoad(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages that arrive for a parachain in every relay block; what does not fit into a block waits for the next.

    Each is in the hash chain of its queue, whose head the relay chain's state has: blocks that lack one are refused.
    """

    downward: Load = 0
    """Bytes from the relay chain."""

    horizontal: Load = 0
    """Bytes from other parachains."""

    message_bytes: Annotated[int, Meta(ge=64, le=MAX_MESSAGE_BYTES)] = 1_024
    """Bytes of each message, at most what Polkadot lets a channel carry; the last message of a block has the rest."""

    senders: list[Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]] = []
    """Ids of the parachains that send the horizontal messages, in turns, each through a channel of its own.

    Without any one modelled parachain sends them all.
    """


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The messages of one parachain, by relay block: what a network asks for."""

    load: MessageLoad
    seed: int
    para_id: int
    downward: LoadTrace | None = None
    horizontal: LoadTrace | None = None

    @classmethod
    def of(cls, load: MessageLoad, *, seed: int, para_id: int) -> "Arrivals":
        """Read the traces that ``load`` names; raises ``BadInput``."""
        traces = [_trace(side) for side in (load.downward, load.horizontal)]
        return cls(load, seed, para_id, *traces)

    def __call__(self, block: int) -> Messages:
        return self._messages(DOWNWARD, block), self._messages(HORIZONTAL, block)

    def bytes_at(self, side: str, block: int) -> int:
        """Return what arrives on one side in relay block ``block``, counted from 1."""
        load: Load = getattr(self.load, side)
        if isinstance(load, Trace):
            trace: LoadTrace = getattr(self, side)
            return trace.at(block, repeats=load.repeats)
        label = b"".join(_labels(self.seed, self.para_id, block)) + side.encode()
        return _drawn(load, block, self.load.message_bytes, lambda: _fraction(label))

    @property
    def digests(self) -> list[bytes]:
        """What the traces hold, for whoever must tell two loads apart."""
        return [trace.digest for trace in (self.downward, self.horizontal) if trace is not None]

    def _messages(self, side: str, block: int) -> tuple[bytes, ...]:
        size, most = self.bytes_at(side, block), self.load.message_bytes
        content = _content(b"".join((*_labels(self.seed), side.encode())), block, size)
        return tuple(content[start : start + most] for start in range(0, size, most))


def without_folders(load: MessageLoad | None) -> MessageLoad | None:
    """Return the load without where its traces lie on this machine."""
    if load is None:
        return None
    sides = {side: getattr(load, side) for side in (DOWNWARD, HORIZONTAL)}
    traces = {side: replace(it, file=Path(it.file).name) for side, it in sides.items() if isinstance(it, Trace)}
    return replace(load, **traces)


def _trace(load: Load) -> LoadTrace | None:
    return read_load_trace(load.file) if isinstance(load, Trace) else None


def _drawn(
    load: LoadBytes | Uniform | Lognormal | Poisson | Bursts, block: int, unit: int, draw: Callable[[], float]
) -> int:
    match load:
        case int():
            return load
        case Uniform():
            return load.low_bytes + int(draw() * (load.high_bytes - load.low_bytes + 1))
        case Lognormal():
            drawn = load.median_bytes * exp(load.sigma * NormalDist().inv_cdf(draw()))
            return min(MAX_WAITING_BYTES, round(drawn))
        case Poisson():
            return unit * _poisson(load.mean_messages, draw())
        case Bursts():
            return load.bytes if (block - 1) % load.every < load.length else load.otherwise_bytes
        case Trace():
            raise AssertionError("a trace is read, not drawn")
        case _:
            assert_never(load)


def _poisson(mean: float, fraction: float) -> int:
    """Return the number at which the distribution's sum passes ``fraction``."""
    count, term = 0, exp(-mean)
    total = term
    while total < fraction and term > 0.0:
        count += 1
        term *= mean / count
        total += term
    return count


def _fraction(label: bytes) -> float:
    """Return a number between 0 and 1, neither included, that ``label`` decides."""
    drawn = int.from_bytes(blake2b(label, digest_size=8).digest(), "little") >> 11
    return (drawn + 0.5) / (1 << 53)


def _labels(*numbers: int) -> Iterator[bytes]:
    return (number.to_bytes(8, "little") for number in numbers)


def _content(label: bytes, block: int, size: int) -> bytes:
    """Return ``size`` bytes that compression does not make smaller: what real messages hold is not known.

    They are cut from one circle of chunks, another part in each block.
    """
    first = block * CHUNKS_BETWEEN_BLOCKS
    chunks = (_chunk(label, (first + index) % CHUNKS) for index in range(-(-size // CHUNK_BYTES)))
    return b"".join(chunks)[:size]


@lru_cache(maxsize=1024)
def _chunk(label: bytes, index: int) -> bytes:
    return shake_128(label + index.to_bytes(2, "little")).digest(CHUNK_BYTES)
