"""The account of a block as a value: nodes and bytes by publisher and by cause, and where asked for by key.

In tables each total is two columns, ``*_nodes`` and ``*_bytes``.
"""

from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct

from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId, Weight


class NodeTotals(Struct, frozen=True):
    """A number of nodes and external values, and their bytes."""

    nodes: int = 0
    node_bytes: int = 0
    """Bytes of the encoded nodes and of external values, without the lengths that SCALE puts before them."""

    def plus(self, node_bytes: int) -> "NodeTotals":
        """Return the totals with one node more."""
        return NodeTotals(self.nodes + 1, self.node_bytes + node_bytes)

    def __add__(self, other: "NodeTotals") -> "NodeTotals":
        return NodeTotals(self.nodes + other.nodes, self.node_bytes + other.node_bytes)


NONE = NodeTotals()


class Ending(Enum):
    """How a pass left a publisher."""

    UNCHANGED = "unchanged"
    """Its child root did not move: nothing below it was read."""

    FINISHED = "finished"
    CUT_SHORT = "cut short"
    NOT_REACHED = "not reached"
    """The budget ended before its turn, or before its child root was known."""

    DISABLED = "disabled"
    ABSENT = "absent"
    """The relay chain has no child trie of it."""


class PublisherAccount(Struct, frozen=True, kw_only=True):
    """What one publisher took of one block of a subscriber.

    In the proof are ``top``, ``new``, ``changed``, ``unseen`` and ``value``; beside it ``cached``; and left out of it
    what was pruned. ``uncacheable`` and ``sibling_bytes`` are parts of ``new``, ``changed`` and ``unseen``.
    """

    publisher: ParaId
    ending: Ending = Ending.UNCHANGED
    keys: int = 0
    """Keys that are subscribed to."""

    keys_walked: int = 0
    """Keys that were dealt with in this block, changed or not."""

    keys_changed: int = 0
    """Keys with a new value in this block."""

    callbacks: int = 0
    """Values that were handed on."""

    top: NodeTotals = NONE
    """The relay chain's top trie, on the way to the child root."""

    new: NodeTotals = NONE
    """Nodes where the old trie, as far as the pass compares with one, has none at that prefix."""

    changed: NodeTotals = NONE
    """Nodes that stand in for another one at the same prefix."""

    unseen: NodeTotals = NONE
    """Nodes where the old trie cannot be seen: what was there, or above, is not in the node cache."""

    value: NodeTotals = NONE
    """External values; a value of at most 32 bytes is inside its node."""

    cached: NodeTotals = NONE
    """Nodes of the new and of the old trie that were read from the node cache."""

    pruned_unchanged: NodeTotals = NONE
    """Collected, and nothing below had moved."""

    pruned_cached: NodeTotals = NONE
    """Collected and read from the node cache instead."""

    pruned_beyond_budget: NodeTotals = NONE
    """Collected, and the budget ended before it was read."""

    pruned_disabled: NodeTotals = NONE
    """Collected before it was known that a path is too deep."""

    uncacheable: NodeTotals = NONE
    """Nodes that the cache policy does not keep."""

    sibling_bytes: int = 0
    """Bytes of child references that lead to no subscribed key."""

    consumed: Weight = Weight.ZERO
    """What the meter charged for its reads: picoseconds, and bytes."""

    @property
    def structure(self) -> NodeTotals:
        """The nodes of the proof that this publisher took."""
        return self.top + self.new + self.changed + self.unseen

    @property
    def proof(self) -> NodeTotals:
        """What of the proof this publisher took, external values among it."""
        return self.structure + self.value

    @property
    def pruned(self) -> NodeTotals:
        """What was collected for it and left out."""
        return self.pruned_unchanged + self.pruned_cached + self.pruned_beyond_budget + self.pruned_disabled

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name).node_bytes for name in IN_THE_PROOF}
        causes = ", ".join(f"{name} {size:,}" for name, size in sizes.items() if size) or "nothing"
        changed = f"{self.keys_changed} of {self.keys} keys changed"
        return f"<PublisherAccount {self.publisher} {self.ending.value}: {changed}, {causes}>"

    def and_then(self, later: "PublisherAccount") -> "PublisherAccount":
        """Return the account of several blocks, with the keys and the ending of the last of them."""
        figures: dict[str, Any] = {name: getattr(self, name) + getattr(later, name) for name in (*TOTALS, *COUNTS)}
        consumed = self.consumed + later.consumed
        return PublisherAccount(
            publisher=self.publisher, ending=later.ending, keys=later.keys, consumed=consumed, **figures
        )

    def columns(self) -> dict[str, int | str]:
        """Return the account as a flat row."""
        row: dict[str, int | str] = {"publisher": int(self.publisher), "ending": self.ending.value, "keys": self.keys}
        row.update({name: getattr(self, name) for name in COUNTS})
        row.update(ref_time=self.consumed.ref_time, proof_size=self.consumed.proof_size)
        for name in TOTALS:
            totals: NodeTotals = getattr(self, name)
            row[f"{name}_nodes"], row[f"{name}_bytes"] = totals.nodes, totals.node_bytes
        return row


COUNTS = ("keys_walked", "keys_changed", "callbacks", "sibling_bytes")
IN_THE_PROOF = ("top", "new", "changed", "unseen", "value")
PRUNED = ("pruned_unchanged", "pruned_cached", "pruned_beyond_budget", "pruned_disabled")
TOTALS = (*IN_THE_PROOF, "cached", *PRUNED, "uncacheable")


class KeyEnding(Enum):
    """What became of one subscribed key in one block."""

    CHANGED = "changed"
    """Its new value was read, and told unless the block panicked."""

    UNCHANGED = "unchanged"
    """It is as it was when it was last dealt with, in this block or in an earlier one of the same round."""

    DELETED = "deleted"
    """It was delivered and is deleted, and the deletion is told; under ``silent`` it counts as unchanged."""

    NOT_REACHED = "not reached"
    DISABLED = "disabled"
    ABSENT = "absent"
    """The relay chain has no child trie of its publisher."""


class NodeUse(NamedTuple):
    """One node or external value of a publisher, and what it was for: the total of ``PublisherAccount`` it counts in.

    It counts with the first subscribed key, in the order of the keys, whose path leads through it. All keys need the
    way through the top trie; it counts with the first of all. ``prefix`` are the nibbles at which it stands; a value
    stands at its whole path.
    """

    publisher: ParaId
    key: SubscribedKey
    prefix: bytes
    node_hash: bytes
    node_bytes: int
    cause: str
    """The field of ``PublisherAccount`` that it counts in."""

    in_top_trie: bool


class KeyAccount(Struct, frozen=True, kw_only=True):
    """What one subscribed key took of one block: of each publisher, its keys' accounts add up to its own."""

    publisher: ParaId
    key: SubscribedKey
    ending: KeyEnding
    top: NodeTotals = NONE
    """Nodes in the proof on the way through the relay chain's top trie: they count with the first key there is."""

    structure: NodeTotals = NONE
    """Nodes in the proof, the ``top`` ones among them."""

    value: NodeTotals = NONE
    """Its external value in the proof."""

    cached: NodeTotals = NONE
    """Nodes that were read from the node cache, beside the proof."""

    pruned: NodeTotals = NONE
    """Collected, and left out of the proof for whatever reason."""

    @property
    def took_nothing(self) -> bool:
        """Whether no node counts with the key, and it did not change."""
        idle = self.structure is self.value is self.cached is self.pruned is NONE
        return idle and self.ending is not KeyEnding.CHANGED


class BlockAccount(Struct, frozen=True):
    """A whole block: the static keys' nodes, each publisher, and what was collected on no path of a subscribed key.

    ``keys`` are empty unless accounts are kept by key or by node, ``nodes`` unless by node.
    """

    static: NodeTotals
    """Nodes and bytes of the keys that every parachain block proves, subscriptions or none."""

    publishers: tuple[PublisherAccount, ...]
    """One account for each subscribed publisher: with ``static`` their ``proof`` is the relay proof, byte for byte."""

    pruned_unsubscribed: NodeTotals = NONE
    """Nodes and bytes that were collected on no path of a subscribed key, and left out."""

    keys: tuple[KeyAccount, ...] = ()
    """One account for each subscribed key; a publisher's keys add up to its own account."""

    nodes: tuple[NodeUse, ...] = ()
    """Every node and external value of a publisher, once for each total that it counts in."""

    @property
    def proof(self) -> NodeTotals:
        """The relay proof of the block."""
        return sum((account.proof for account in self.publishers), self.static)

    @property
    def pruned(self) -> NodeTotals:
        """What was collected beside it."""
        return sum((account.pruned for account in self.publishers), self.pruned_unsubscribed)

    def __repr__(self) -> str:
        sizes = f"{self.proof.node_bytes:,} bytes, {self.static.node_bytes:,} of them static"
        return f"<BlockAccount of {sizes}: {', '.join(map(repr, self.publishers)) or 'no publishers'}>"
