"""The depth attack: a publisher whose keys are made so that one path of its trie is deeper than subscribers allow.

Keys are 32 bytes of the publisher's choice. One more key that shares all but its last nibble with the path so far makes
that path one node deeper. A limit of N nodes is broken by N keys. Until the attack strikes the path has as many nodes
as are allowed; then one key more is published.
"""

from collections.abc import Sequence

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, Carried, HonestPublisher, add_bystanders, bystander, carried
from relaycast.scenario.workload import crafted_keys, value_of
from relaycast_collator import ChainSimulator
from relaycast_ledger import BlockRecord, Ledger
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import Engine, StorageProof
from relaycast_xcm import ParaId

ATTACKER, SUBSCRIBER = ParaId(2_001), 3_000
FEEDS = (HonestPublisher.of(1_000, 10), HonestPublisher.of(2_000, 10), HonestPublisher.of(2_002, 10))
"""Bystanders: a system parachain, and public ones with numbers on both sides of the attacker's."""

LOWEST_LIMIT, HIGHEST_LIMIT = 4, 64
"""Below, the bystanders' own tries are too deep; above, no path of 64 nibbles can be."""

VALUE_BYTES = 32
"""Long enough to stand outside of its node, so that every node of the path has a hash."""

STRIKE_AT = 6
FEWEST_BLOCKS = STRIKE_AT + 3
"""The subscriber learns of a value two blocks after it was sent."""


class DepthReport(Struct, frozen=True, kw_only=True):
    """What became of the attacker, and of the others. Blocks are of the relay chain's clock."""

    limit: int
    blocks: int
    seed: int
    crafted_keys: int
    path_nodes_before: int
    path_nodes_after: int
    struck_at: int
    """The block in which the last key is sent."""

    disabled_at: int | None
    """The block in which the subscriber disables the attacker, ``None`` when it does not."""

    disabled_at_number: int | None
    """The same in the subscriber's own numbers."""

    disabled_alone: tuple[int, ...]
    """Publishers disabled without the last key: nobody should be."""

    disabled_attacked: tuple[int, ...]
    attacker_callbacks_after: int
    """Values of the attacker handed on from the block on that disables it."""

    proof_bytes_when_disabled: int | None
    bystanders: tuple[Bystander, ...]
    carried_alone: Carried
    carried_attacked: Carried
    violations: tuple[str, ...]

    @property
    def harmed(self) -> bool:
        """Whether anybody else was disabled, or got less or later than without the attack."""
        others = {*self.disabled_alone, *self.disabled_attacked} - {int(ATTACKER)}
        return bool(others) or any(it.harmed for it in self.bystanders)

    @property
    def contained(self) -> bool:
        """Whether the limit did what it is for: the attacker is out, nothing of it comes through, the others go on."""
        return self.disabled_at is not None and not (
            self.disabled_alone or self.attacker_callbacks_after or self.harmed
        )

    def __repr__(self) -> str:
        when = "never" if self.disabled_at is None else f"at block {self.disabled_at}"
        harm = "others were harmed" if self.harmed else "nobody else was harmed"
        return f"<DepthReport attacker disabled {when} by {self.crafted_keys} keys, {harm}>"


def depth(*, limit: int = 16, blocks: int = 20, seed: int = 0, trie_engine: Engine = "auto") -> DepthReport:
    """Attack a subscriber whose ``MaxTrieDepth`` is ``limit``, over ``blocks`` blocks."""
    if not LOWEST_LIMIT <= limit <= HIGHEST_LIMIT or blocks < FEWEST_BLOCKS:
        raise ValueError(
            f"a limit of {LOWEST_LIMIT} to {HIGHEST_LIMIT} and {FEWEST_BLOCKS} blocks or more, got {limit} and {blocks}"
        )
    alone, attacked = (_Griefing(limit, ChainSimulator(seed=seed, window=2, trie_engine=trie_engine)) for _ in range(2))
    for _ in range(blocks):
        alone.step(striking=False)
        attacked.step(striking=True)
    return attacked.report(alone, blocks)


class _Griefing:
    """A network with bystanders and the attacker."""

    def __init__(self, limit: int, network: ChainSimulator) -> None:
        self.limit = limit
        self.network, self.ledger = network, Ledger(network)
        add_bystanders(self.network, FEEDS, SUBSCRIBER, config=SubscriberConfig(max_trie_depth=limit))
        self.network.add_parachain(ATTACKER)
        self.network.register_publisher(ATTACKER)
        self.target = SubscribedKey.from_data(b"target")
        self.network.subscribe(SUBSCRIBER, ATTACKER, [self.target])
        self.siblings = crafted_keys(self.target, limit)
        self.records: list[BlockRecord] = []
        self.path_nodes_before = 0

    def step(self, *, striking: bool) -> None:
        tick = self.network.tick + 1
        for feed in FEEDS:
            feed.publish(self.network)
        if tick == 1:
            self._publish(self.siblings[:-1], tick)
        if tick == STRIKE_AT:
            self.path_nodes_before = self.path_nodes()
        if striking and tick == STRIKE_AT:
            self._publish(self.siblings[-1:], tick)
        self._publish([self.target], tick)
        self.records.extend(self.ledger.step())

    def path_nodes(self) -> int:
        """Return how many nodes with a hash lead to the target in the relay chain's last state."""
        state = self.network.relay_chain.state
        root = state.get(derive_child_info(ATTACKER).prefixed_storage_key())
        assert root is not None
        return len(StorageProof.generate(state.db, root, [self.target])) - 1

    def report(self, alone: "_Griefing", blocks: int) -> DepthReport:
        disabling = next((record for record in self.records if ATTACKER in record.disabled), None)
        after = self.records if disabling is None else [it for it in self.records if it.tick >= disabling.tick]
        violations = (*self.ledger.invariants.violations, *alone.ledger.invariants.violations)
        return DepthReport(
            limit=self.limit,
            blocks=blocks,
            seed=self.network.seed,
            crafted_keys=len(self.siblings),
            path_nodes_before=self.path_nodes_before,
            path_nodes_after=self.path_nodes(),
            struck_at=STRIKE_AT,
            disabled_at=None if disabling is None else disabling.tick,
            disabled_at_number=None if disabling is None else disabling.number,
            disabled_alone=_disabled(alone.records),
            disabled_attacked=_disabled(self.records),
            attacker_callbacks_after=sum(it.publisher == ATTACKER for record in after for it in record.deliveries),
            proof_bytes_when_disabled=None if disabling is None else disabling.proof_bytes,
            bystanders=tuple(bystander(int(it.para_id), SUBSCRIBER, alone.records, self.records) for it in FEEDS),
            carried_alone=carried(alone.records),
            carried_attacked=carried(self.records),
            violations=tuple(map(str, violations)),
        )

    def _publish(self, keys: Sequence[SubscribedKey], tick: int) -> None:
        parachain = self.network.parachains[ATTACKER]
        for key in keys:
            index = int.from_bytes(key[:8], "little")
            value = value_of(self.network.seed, int(ATTACKER), index, tick, VALUE_BYTES)
            parachain.publish(key, value, tick=tick)


def _disabled(records: Sequence[BlockRecord]) -> tuple[int, ...]:
    return tuple(sorted({int(para_id) for record in records for para_id in record.disabled}))
