"""Keeping score of single keys: what each took of a subscriber's blocks, and what came of it."""

from msgspec import Struct, field

from relaycast_ledger.account_records import KeyEnding
from relaycast_ledger.records import BlockRecord

Place = tuple[int, bytes]
"""A publisher and a key."""


class KeyCost(Struct, frozen=True, kw_only=True):
    """What one key took of one subscriber's blocks: bytes that it adds to those of the keys before it."""

    publisher: int
    key: bytes
    callbacks: int
    changed_blocks: int
    node_bytes: int
    """Nodes in the proofs, without the way through the top trie."""

    value_bytes: int
    """External values in the proofs; shorter ones are in their nodes."""

    cached_bytes: int
    pruned_bytes: int
    slowest_blocks: int
    """The longest way of a value, from publication to delivery."""

    conflated: int

    @property
    def proof_bytes(self) -> int:
        """What of the proofs counts with this key."""
        return self.node_bytes + self.value_bytes


class _Sums(Struct):
    callbacks: int = 0
    changed_blocks: int = 0
    node_bytes: int = 0
    value_bytes: int = 0
    cached_bytes: int = 0
    pruned_bytes: int = 0
    slowest_blocks: int = 0
    conflated: int = 0


class KeyTally(Struct):
    """The keys of one subscriber so far; bytes are there where accounts are kept by key."""

    sums: dict[Place, _Sums] = field(default_factory=dict)
    has_bytes: bool = False

    def add(self, record: BlockRecord) -> None:
        """Count one block in."""
        for delivery in record.deliveries:
            it = self._of(delivery.publisher, delivery.key)
            it.callbacks += 1
            it.conflated += delivery.conflated
            if not delivery.told_again:
                it.slowest_blocks = max(it.slowest_blocks, delivery.latency_blocks)
        for account in () if record.account is None else record.account.keys:
            self.has_bytes = True
            it = self._of(account.publisher, account.key)
            if account.took_nothing:
                continue
            it.changed_blocks += account.ending is KeyEnding.CHANGED
            it.node_bytes += account.structure.node_bytes - account.top.node_bytes
            it.value_bytes += account.value.node_bytes
            it.cached_bytes += account.cached.node_bytes
            it.pruned_bytes += account.pruned.node_bytes

    def extend(self, later: "KeyTally") -> None:
        """Count in the blocks of another tally, which come after these."""
        self.has_bytes |= later.has_bytes
        for (publisher, key), more in later.sums.items():
            it = self._of(publisher, key)
            slowest = max(it.slowest_blocks, more.slowest_blocks)
            for name in more.__struct_fields__:
                setattr(it, name, getattr(it, name) + getattr(more, name))
            it.slowest_blocks = slowest

    @property
    def costs(self) -> list[KeyCost]:
        """Every key, the one with most bytes first."""
        found = [
            KeyCost(publisher=publisher, key=key, **{name: getattr(it, name) for name in it.__struct_fields__})
            for (publisher, key), it in self.sums.items()
        ]
        return sorted(found, key=lambda it: (-it.proof_bytes, -it.callbacks, it.publisher, it.key))

    def _of(self, publisher: int, key: bytes) -> _Sums:
        known = self.sums.get((publisher, key))
        if known is None:
            known = self.sums[int(publisher), bytes(key)] = _Sums()
        return known
