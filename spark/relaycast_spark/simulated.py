"""What a batch run asks of a simulation: that it goes on block by block, and can be put away and taken up again."""

from dataclasses import dataclass
from typing import Protocol, Self

from relaycast_collator import Chains
from relaycast_ledger import BlockRecord, Ledger
from relaycast_spark.tables import PublisherCount


@dataclass(frozen=True, slots=True)
class Advanced:
    """What one relay block brought: subscriber blocks, what was taken of publishers, and the log's lines."""

    records: list[BlockRecord]
    publishers: list[PublisherCount]
    events: bytes


class Simulated(Protocol):
    """A network with a workload; everything that follows is decided by its state.

    It must pickle between blocks, but need not before block 1.
    """

    @property
    def chains(self) -> Chains:
        """The chains themselves."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Who keeps score of them."""
        ...

    def listen(self) -> None:
        """Let what keeps score listen to the chains again; they forget listeners when they are put away."""
        ...

    def advance(self, block: int, /) -> Advanced:
        """Let relay block number ``block`` pass and say what it brought."""
        ...

    def pass_over(self, block: int, /) -> None:
        """Let relay block number ``block`` pass without keeping score."""
        ...

    def look_ahead(self, last: int, /) -> None:
        """Have at hand, and pickle, whatever comes from outside up to block ``last``."""
        ...

    def go_on_from(self, prepared: Self, /) -> None:
        """Take from ``prepared``, which stands before block 1, what a checkpoint does not decide.

        That is where outside things come from, which does not pickle, and the trie engine, which changes no byte.
        """
        ...
