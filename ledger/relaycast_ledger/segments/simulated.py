"""What a run in segments asks of a simulation, and what it reports to whoever draws its progress."""

from collections.abc import Callable
from typing import Annotated, Protocol

from msgspec import Struct

from relaycast_collator import ChainSimulator
from relaycast_ledger.ledger import Ledger
from relaycast_ledger.record_fields import Total
from relaycast_ledger.records import BlockRecord
from relaycast_xcm.checkpoint import U32, Count

CountSum = Annotated[Count, Total()]


class Progress(Protocol):
    """Something that shows stages; ``total`` and ``done`` count the stage's rows."""

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None: ...

    def advance(self, stage: str, rows: int) -> None: ...


class Unseen:
    """Shows nothing."""

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        """Show nothing."""

    def advance(self, stage: str, rows: int) -> None:
        """Show nothing."""


class PublisherCount(Struct, array_like=True, forbid_unknown_fields=True):
    """Numbers of a publisher's publications, and the bytes of their values; ``refused`` counts messages."""

    para_id: U32
    sent: CountSum
    published: CountSum
    refused: CountSum
    value_bytes: CountSum

    @classmethod
    def zero(cls, para_id: int) -> "PublisherCount":
        """Return the numbers of a publisher that has sent nothing."""
        return cls(para_id, 0, 0, 0, 0)


class Advanced(Struct, frozen=True):
    """What one relay block brought: subscriber blocks, what was taken of publishers, and the log's lines."""

    records: list[BlockRecord]
    publishers: list[PublisherCount]
    events: bytes


class Simulated(Protocol):
    """A network with a workload; everything that follows is decided by its state.

    It can be put away between blocks, but need not before block 1.
    """

    @property
    def chains(self) -> ChainSimulator:
        """The chains themselves."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Who keeps score of them."""
        ...

    def advance(self, block: int, /) -> Advanced:
        """Let relay block number ``block`` pass and say what it brought."""
        ...

    def pass_over(self, block: int, /) -> None:
        """Let relay block number ``block`` pass without keeping score."""
        ...

    def look_ahead(self, last: int, /) -> None:
        """Have at hand, and put away, whatever comes from outside up to block ``last``."""
        ...

    def take_told(self) -> bytes:
        """Return a part of the run, of the blocks that were advanced since it was last asked: see ``decode_part``."""
        ...

    def dump(self) -> bytes:
        """Return what it holds beside chains and ledger: how far its workload is."""
        ...

    def load(self, data: bytes, /) -> None:
        """Go on from what another one, prepared alike, put away; raises ``CheckpointRefused``."""
        ...

    def preparation(self) -> "Preparation":
        """Return what prepares another one like it, also in another process and without files."""
        ...


Preparation = Callable[[], Simulated]
"""Prepares a simulation to load a checkpoint into."""
