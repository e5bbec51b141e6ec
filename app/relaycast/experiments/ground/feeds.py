"""One publisher, one reader, and values that change at a chosen pace: the smallest network that answers a question."""

from collections.abc import Sequence
from dataclasses import dataclass

from relaycast.experiments.ground.simulations import check
from relaycast.feed import Feed
from relaycast.network import Network, Publisher, Reader
from relaycast.scenario.policy_choice import PolicyTable, budget_of, policies_of
from relaycast.scenario.workload import value_of
from relaycast_ledger import BlockRecord
from relaycast_trie import blake2_256
from relaycast_xcm import ParaId

PUBLISHER, READER = 2_000, 3_000

UPSTREAM_A_BLOCK = 256
"""Publications that a parachain can send with one block: 16 messages of 16 instructions."""


@dataclass(slots=True)
class Feeds:
    """A publisher of ``keys``, of which a reader wants the first ``read``; both know all values when it begins."""

    network: Network
    publisher: Publisher
    reader: Reader
    feeds: list[Feed]
    value_bytes: int
    turn: int = 0

    @classmethod
    def settled(
        cls,
        *,
        keys: int,
        read: int,
        value_bytes: int,
        seed: int,
        policies: PolicyTable | None = None,
        max_pov_bytes: int | None = None,
        max_cached_bytes: int | None = None,
        other_entries: int = 0,
    ) -> "Feeds":
        """Return a network at rest; the reader's own state holds ``other_entries`` that pub-sub has no part in."""
        table = policies or PolicyTable()
        network = Network(seed=seed)
        publisher = network.publisher(PUBLISHER)
        feeds = [publisher.feed(f"key/{index}") for index in range(keys)]
        reader = network.subscriber(
            READER,
            keys=feeds[:read],
            policies=policies_of(table),
            budget=budget_of(table, pov_percent=85),
            max_pov_bytes=max_pov_bytes,
            max_cached_bytes=max_cached_bytes,
        )
        state = network.chains.parachains[ParaId(READER)].state
        for index in range(other_entries):
            state.put(blake2_256(b"other/%d" % index), blake2_256(b"value/%d" % index) * 3)
        started = cls(network, publisher, reader, feeds, value_bytes)
        started.publish(range(keys))
        for _ in range(-(-keys // UPSTREAM_A_BLOCK) + 4):
            network.ledger.step()
        return started

    def publish(self, indices: Sequence[int]) -> None:
        """Send new values for these keys."""
        for index in indices:
            value = value_of(self.network.chains.seed, PUBLISHER, index, self.turn, self.value_bytes)
            self.publisher.publish(f"key/{index}", value)
        self.turn += 1

    def blocks(self, count: int, *, changed: int, held_to_invariants: bool = True) -> list[BlockRecord]:
        """Let ``count`` blocks pass, each with new values for ``changed`` of the keys that are read, in turns.

        Returns the reader's blocks from when it meets the first of these changes.
        """
        read = sum(map(len, self.network.chains.parachains[ParaId(READER)].kept.wanted.values()))
        records: list[BlockRecord] = []
        for block in range(count + 2):
            first = block * changed
            self.publish([(first + offset) % read for offset in range(changed)])
            records += self.network.ledger.step()
        if held_to_invariants:
            check(self.network)
        return records[2:]
