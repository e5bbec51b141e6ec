"""What can be put into served chains between two ticks, beside extrinsics (``timeline.Input``)."""

from collections.abc import Mapping
from dataclasses import dataclass

from relaycast_collator.parachain import Parachain
from relaycast_node.chain.genesis import ModelledTime
from relaycast_node.chain.served_chain import ServedChain


@dataclass(frozen=True, slots=True)
class StorageWritten:
    """Values for a chain's storage; ``child`` is the bare name of a child trie."""

    chain: ServedChain
    values: Mapping[bytes, bytes | None]
    child: bytes | None = None

    def apply(self) -> None:
        """Write them; raises ``ValueError``, see ``ServedChain.set_storage``."""
        self.chain.set_storage(self.values, child=self.child)


@dataclass(frozen=True, slots=True)
class Published:
    """A value that a parachain publishes with its next block."""

    parachain: Parachain
    key: bytes
    value: bytes
    ttl: int = 0

    def apply(self) -> None:
        """Publish it; ``ValueError`` for what cannot be published."""
        self.parachain.publish(self.key, self.value, ttl=self.ttl)


@dataclass(frozen=True, slots=True)
class TimeMoved:
    """Blocks are this much later from now on, in milliseconds after the modelled time."""

    time: ModelledTime
    offset: int

    def apply(self) -> None:
        self.time.offset = self.offset
