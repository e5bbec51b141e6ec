"""The squat attack: an account that registers a parachain of others, and removes what it publishes as its manager.

In the drafts any account may register any parachain, and the first one that does becomes its manager. Every few blocks
the attacker deregisters the parachain and registers it again in one call. All entries go, the deposit comes back and is
held anew, and the owner finds no block in which the id is free. Where both call in one block, the attacker comes first,
but for the case in which the owner was registered before.
"""

from collections import Counter
from dataclasses import replace

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, HonestPublisher, add_bystanders, bystander
from relaycast_collator import ChainSimulator, Pace
from relaycast_ledger import BlockRecord, Ledger
from relaycast_pallets.broadcaster.config import POLKADOT, REGISTRATIONS
from relaycast_pallets.broadcaster.pallet import PUBLISHER_DEPOSIT
from relaycast_pallets.frame.system import Origin
from relaycast_trie import Engine, blake2_256
from relaycast_xcm import Weight

ATTACKER = blake2_256(b"attacker")
PUBLIC = HonestPublisher.of(2_000, 10, per_block=1)
SYSTEM = HonestPublisher.of(1_000, 10, per_block=1)
"""Ten keys each, of which one gets a new value in every block: the other nine values are up to nine blocks old."""

PROMPT, SLOW, LATE = 3_000, 3_001, 3_002
"""Readers: one with a block on every relay block, one with a block on every third, one that subscribes halfway."""

SLOW_PACE = Pace(relay_blocks=3)
FEWEST_BLOCKS = 8
CASES = ((PUBLIC, "public", False), (PUBLIC, "public", True), (SYSTEM, "public", False), (SYSTEM, "open", False))
"""Whose id, the policy of registration by its name, and whether the owner registers before the attacker does."""


class SquatRow(Struct, frozen=True, kw_only=True):
    """One id under one policy of registration. Refusals count calls by the error that refused them."""

    para_id: int
    registration: str
    owner_first: bool
    attacker_registered: int
    attacker_refused: dict[str, int]
    owner_registered: int
    owner_refused: dict[str, int]
    """Both empty of a system parachain, which publishes without registering."""

    removed_values: int
    missing_values: int
    """Over all blocks, the keys without a value that have one without the attack."""

    deposit_planck: int
    """The most that was on hold from the attacker."""

    deposit_blocks: int
    """Number of blocks in which that happened."""

    spent_planck: int
    """What the attacker would not have back if it deregistered now; transaction fees are not modelled."""

    bystanders: tuple[Bystander, ...]

    @property
    def harmed(self) -> bool:
        """Whether values of the publisher vanished, or a reader lost any or got them later."""
        return self.removed_values > 0 or self.missing_values > 0 or any(it.harmed for it in self.bystanders)


class SquatReport(Struct, frozen=True, kw_only=True):
    """What became of every id that was squatted on."""

    blocks: int
    every: int
    seed: int
    late_from: int
    """The block from which the late reader subscribes."""

    rows: tuple[SquatRow, ...]
    violations: tuple[str, ...]

    @property
    def harmed(self) -> bool:
        """Whether anybody was harmed in any of the cases."""
        return any(row.harmed for row in self.rows)

    def __repr__(self) -> str:
        harmed = sum(row.harmed for row in self.rows)
        return f"<SquatReport others were harmed in {harmed} of {len(self.rows)} cases>"


def squat(*, every: int = 4, blocks: int = 24, seed: int = 0, trie_engine: Engine = "auto") -> SquatReport:
    """Squat on a public and on a system parachain's id, and remove what is published every ``every`` blocks."""
    if every < 1 or blocks < FEWEST_BLOCKS:
        raise ValueError(f"every block or less often and {FEWEST_BLOCKS} blocks or more, got {every} and {blocks}")
    rows, violations = list[SquatRow](), list[str]()
    for feed, registration, owner_first in CASES:
        config = replace(POLKADOT, name="custom", registration=REGISTRATIONS[registration])
        alone, attacked = (
            ChainSimulator(seed=seed, window=2, broadcaster=config, trie_engine=trie_engine) for _ in range(2)
        )
        runs = _Squat(alone, feed), _Squat(attacked, feed, attacked=True, owner_first=owner_first)
        for block in range(blocks):
            for run in runs:
                run.step(strikes=block > 0 and block % every == 0, late=block + 1 == blocks // 2)
        rows.append(_row(*runs, registration=registration, owner_first=owner_first))
        violations += [str(it) for run in runs for it in run.ledger.invariants.violations]
    return SquatReport(
        blocks=blocks, every=every, seed=seed, late_from=blocks // 2, rows=tuple(rows), violations=tuple(violations)
    )


class _Squat:
    """A network with one publisher and its readers, ``attacked`` by an account that wants the publisher's id."""

    def __init__(
        self, network: ChainSimulator, feed: HonestPublisher, *, attacked: bool = False, owner_first: bool = False
    ) -> None:
        self.network, self.feed, self._attacked = network, feed, attacked
        self.ledger = Ledger(network)
        self.records: list[BlockRecord] = []
        self.registered, self.refused = Counter[str](), {"attacker": Counter[str](), "owner": Counter[str]()}
        self.stored: list[int] = []
        """The publisher's values after each block."""

        self.held: list[int] = []
        """What is on hold from the attacker after each block."""

        self.removed_values = 0
        self._callers: list[str] = []
        network.relay_chain.balances.mint(ATTACKER, network.relay_chain.broadcaster.config.publisher_deposit)
        if not owner_first:
            self._strike()
        add_bystanders(network, [feed], PROMPT)
        if not feed.para_id.is_system:
            self._callers.append("owner")
        if owner_first:
            self._strike()
        for reader in (SLOW, LATE):
            network.add_parachain(reader, pace=SLOW_PACE if reader == SLOW else None)
        network.subscribe(SLOW, feed.para_id, list(feed.keys))

    def step(self, *, strikes: bool, late: bool) -> None:
        """Let a block pass, which ``strikes`` if the network is attacked; with it the ``late`` reader subscribes."""
        if strikes:
            self._strike()
        if late:
            self.network.subscribe(LATE, self.feed.para_id, list(self.feed.keys))
        self.feed.publish(self.network)
        self.records.extend(self.ledger.step())
        for caller, ended in zip(self._callers, self.network.relay_chain.head.calls, strict=True):
            if ended.error is None:
                self.registered[caller] += 1
            else:
                self.refused[caller][type(ended.error).__name__] += 1
        self._callers.clear()
        broadcaster, balances = self.network.relay_chain.broadcaster, self.network.relay_chain.balances
        self.stored.append(len(broadcaster.storage.keys_of(self.feed.para_id)))
        self.held.append(balances.held(ATTACKER, PUBLISHER_DEPOSIT))

    def spent_planck(self) -> int:
        """Return what the attacker had at first, and has neither free nor on hold."""
        balances, given = (
            self.network.relay_chain.balances,
            self.network.relay_chain.broadcaster.config.publisher_deposit,
        )
        return given - balances.free(ATTACKER) - balances.held(ATTACKER, PUBLISHER_DEPOSIT)

    def _strike(self) -> None:
        """Let the attacker have the id anew with the next block, and its owner try for it afterwards."""
        if not self._attacked:
            return
        broadcaster, para_id = self.network.relay_chain.broadcaster, self.feed.para_id
        weight, origin = broadcaster.config.weight, Origin.signed(ATTACKER)
        info, entries = broadcaster.storage.registered_publishers.get(para_id), self.stored[-1] if self.stored else 0
        manages = info is not None and info.manager == ATTACKER

        def have_it_anew() -> Weight:
            left = broadcaster.deregister_publisher(origin, para_id) if manages else Weight.ZERO
            weighed = left + broadcaster.register_publisher(origin, para_id)
            self.removed_values += entries if manages else 0
            return weighed

        declared = weight("register_publisher")
        if manages:
            declared += weight("deregister_publisher", k=entries)
        self.network.call(have_it_anew, declared=declared)
        self._callers.append("attacker")
        if manages and not para_id.is_system:
            self.network.register_publisher(para_id)
            self._callers.append("owner")


def _row(alone: _Squat, attacked: _Squat, *, registration: str, owner_first: bool) -> SquatRow:
    para_id, runs = int(attacked.feed.para_id), (alone.records, attacked.records)
    readers = [[[it for it in records if it.para_id == reader] for records in runs] for reader in (PROMPT, SLOW, LATE)]
    return SquatRow(
        para_id=para_id,
        registration=registration,
        owner_first=owner_first,
        attacker_registered=attacked.registered["attacker"],
        attacker_refused=dict(sorted(attacked.refused["attacker"].items())),
        owner_registered=attacked.registered["owner"],
        owner_refused=dict(sorted(attacked.refused["owner"].items())),
        removed_values=attacked.removed_values,
        missing_values=sum(before - after for before, after in zip(alone.stored, attacked.stored, strict=True)),
        deposit_planck=max(attacked.held),
        deposit_blocks=sum(held > 0 for held in attacked.held),
        spent_planck=attacked.spent_planck(),
        bystanders=tuple(
            bystander(para_id, reader, *records) for reader, records in zip((PROMPT, SLOW, LATE), readers, strict=True)
        ),
    )
