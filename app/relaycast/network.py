"""``rc.Network``: chains in a few lines of Python, for notebooks, tests and first steps.

The objects here name things and keep score; what happens is the collator room's doing. ``chains`` is that network
itself, for whoever needs more than publishing and reading.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import relaycast_collator as collator
from relaycast.chain_spec import ChainSpec, read_chain_spec
from relaycast.tally import Delivery, Tally
from relaycast_pallets.broadcaster_config import POLKADOT, BroadcasterConfig
from relaycast_pallets.parachain_system import MAX_POV_BYTES
from relaycast_pallets.policies import Policies
from relaycast_pallets.published_entry import INFINITE
from relaycast_pallets.relay_budget import BudgetPolicy
from relaycast_pallets.subscription import SubscribedKey
from relaycast_trie import StateVersion
from relaycast_xcm import ParaId


@dataclass(frozen=True, slots=True)
class Feed:
    """A key of a publisher; ``name`` is what was hashed into ``key``, where there was a name."""

    publisher: int
    key: bytes
    name: str = ""

    def __repr__(self) -> str:
        return f"<Feed {self.name or '0x' + self.key.hex()} of {self.publisher}>"


class Publisher:
    """A parachain that publishes. A key is a name, hashed with Blake2b-256, or 32 bytes taken as they are."""

    def __init__(self, chain: collator.Parachain, network: "Network") -> None:
        self._chain = chain
        self._network = network

    @property
    def para_id(self) -> int:
        """The parachain's id."""
        return int(self._chain.para_id)

    def feed(self, key: str | bytes) -> Feed:
        """Return the feed under ``key``, published or not."""
        if isinstance(key, str):
            return Feed(self.para_id, bytes(SubscribedKey.from_data(key.encode())), key)
        return Feed(self.para_id, bytes(SubscribedKey(key)))

    def publish(self, key: str | bytes, value: bytes, *, ttl: int = INFINITE) -> Feed:
        """Send ``value`` with the parachain's next block, to expire ``ttl`` relay blocks after it is published."""
        feed = self.feed(key)
        self._chain.publish(feed.key, value, ttl=ttl, tick=self._network.chains.tick + 1)
        return feed

    def publish_many(self, values: Mapping[str, bytes] | Mapping[bytes, bytes], *, ttl: int = INFINITE) -> list[Feed]:
        """Send all ``values`` and return their feeds, in the same order."""
        return [self.publish(key, value, ttl=ttl) for key, value in values.items()]

    def __repr__(self) -> str:
        return f"<Publisher {self.para_id}, {len(self._chain.outbox)} values waiting>"


class Reader:
    """A parachain that subscribes; ``reader[feed]`` is the last value that reached it."""

    def __init__(self, chain: collator.Parachain) -> None:
        self._chain = chain

    @property
    def para_id(self) -> int:
        """The parachain's id."""
        return int(self._chain.para_id)

    def __getitem__(self, feed: Feed) -> bytes:
        return self._chain.kept.values[ParaId(feed.publisher), SubscribedKey(feed.key)][0]

    def __contains__(self, feed: Feed) -> bool:
        return (ParaId(feed.publisher), SubscribedKey(feed.key)) in self._chain.kept.values

    def __len__(self) -> int:
        return len(self._chain.kept.values)

    def __repr__(self) -> str:
        wanted = sum(map(len, self._chain.kept.wanted.values()))
        return f"<Reader {self.para_id}, {len(self)} of {wanted} values there>"


class Run:
    """What some blocks came to: ``delivery`` over all subscribers, ``subscribers`` by parachain, ``invariants``."""

    def __init__(self, tally: Tally, invariants: collator.Invariants, *, blocks: int) -> None:
        self.blocks = blocks
        self.subscribers = tally.subscribers
        self.delivery: Delivery = tally.delivery()
        self.invariants = invariants

    def __repr__(self) -> str:
        return f"<Run of {self.blocks} blocks: {self.delivery!r}, {self.invariants!r}>"


class Network:
    """A relay chain and parachains under one clock; ``genesis`` is a raw chain spec, or the file of one."""

    def __init__(
        self,
        *,
        seed: int = 0,
        genesis: str | ChainSpec | None = None,
        broadcaster: BroadcasterConfig = POLKADOT,
    ) -> None:
        spec = read_chain_spec(genesis) if isinstance(genesis, str) else genesis
        if spec is None:
            start = collator.modelled_genesis(seed)
        else:
            start = collator.Genesis(spec.top, spec.children, StateVersion.V0)
        self.genesis_entries = len(start.top)
        self.chains = collator.Network(seed=seed, genesis=start, broadcaster=broadcaster)
        self._registered: set[int] = set()

    def publisher(self, para_id: int) -> Publisher:
        """Return the parachain as a publisher; one that is no system parachain registers with the next relay block."""
        chain = self._chain(para_id)
        if not chain.para_id.is_system and para_id not in self._registered:
            self.chains.register_publisher(para_id)
            self._registered.add(para_id)
        return Publisher(chain, self)

    def subscriber(
        self,
        para_id: int,
        *,
        keys: Iterable[Feed],
        policies: Policies | None = None,
        budget: BudgetPolicy | None = None,
        max_pov_bytes: int = MAX_POV_BYTES,
    ) -> Reader:
        """Let the parachain read ``keys``, of one publisher or several; the rest counts when the parachain is new."""
        chain = self._chain(para_id, policies=policies, budget=budget, max_pov_size=max_pov_bytes)
        wanted: dict[int, list[bytes]] = {}
        for feed in keys:
            wanted.setdefault(feed.publisher, []).append(feed.key)
        for publisher, found in wanted.items():
            self.chains.subscribe(para_id, publisher, found)
        return Reader(chain)

    def run(self, *, blocks: int) -> Run:
        """Let ``blocks`` relay blocks pass."""
        if blocks < 1:
            raise ValueError(f"a run has at least one block, got {blocks}")
        tally = Tally()
        for _ in range(blocks):
            for record in self.chains.step():
                tally.add(record)
        return Run(tally, self.chains.invariants, blocks=blocks)

    def _chain(self, para_id: int, **options: Any) -> collator.Parachain:
        known = self.chains.parachains.get(ParaId(para_id))
        return known if known is not None else self.chains.add_parachain(para_id, **options)

    def __repr__(self) -> str:
        return f"<relaycast.Network at block {self.chains.tick}, {len(self.chains.parachains)} parachains>"
