"""Which key each node of a publisher counts with, and what each key took.

Law: a node counts with the first subscribed key, in the order of the keys, whose path leads through it. So a key's
account is what it adds to the keys before it, and the accounts of a publisher's keys add up to the publisher's.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from relaycast_ledger.account_records import Ending, KeyAccount, KeyEnding, NodeTotals, NodeUse
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.processing_result import PublisherChange
from relaycast_trie.nibbles import to_nibbles


class Entry(NamedTuple):
    """A node that counts in the total ``cause``, with subscribed key number ``key_index``, ``depth`` nibbles down."""

    cause: str
    node_hash: bytes
    node_bytes: int
    key_index: int
    depth: int
    in_top_trie: bool = False


_COUNTS_IN = {
    "top": ("top", "structure"),
    "new": ("structure",),
    "changed": ("structure",),
    "unseen": ("structure",),
    "value": ("value",),
    "cached": ("cached",),
    "pruned_unchanged": ("pruned",),
    "pruned_cached": ("pruned",),
    "pruned_beyond_budget": ("pruned",),
    "pruned_disabled": ("pruned",),
}
"""The totals of a ``KeyAccount`` by those of its ``PublisherAccount``."""

_SAME_FOR_ALL = {
    Ending.UNCHANGED: KeyEnding.UNCHANGED,
    Ending.NOT_REACHED: KeyEnding.NOT_REACHED,
    Ending.DISABLED: KeyEnding.DISABLED,
    Ending.ABSENT: KeyEnding.ABSENT,
}


def node_uses(view: PublisherView, entries: Iterable[Entry]) -> Iterator[NodeUse]:
    """Say of every entry of a publisher where it stands and for whom."""
    keys, paths = view.subscribed.keys, view.subscribed.paths
    top = to_nibbles(derive_child_info(view.para_id).prefixed_storage_key())
    for cause, node_hash, node_bytes, index, depth, in_top_trie in entries:
        prefix = (top if in_top_trie else paths[index])[:depth]
        yield NodeUse(view.para_id, keys[index], prefix, node_hash, node_bytes, cause, in_top_trie)


def key_accounts(
    view: PublisherView, ending: Ending, change: PublisherChange | None, entries: Iterable[Entry]
) -> Iterator[KeyAccount]:
    """Share a publisher's entries out among its keys: one account for each, in their order."""
    sums: dict[int, dict[str, list[int]]] = {}
    for cause, _, node_bytes, index, _, _ in entries:
        mine = sums.setdefault(index, {})
        for name in _COUNTS_IN[cause]:
            total = mine.setdefault(name, [0, 0])
            total[0] += 1
            total[1] += node_bytes
    endings = _endings(view, ending, change)
    for index, (key, became) in enumerate(zip(view.subscribed.keys, endings, strict=True)):
        if index not in sums:
            yield KeyAccount(publisher=view.para_id, key=key, ending=became)
            continue
        totals = {name: NodeTotals(*total) for name, total in sums[index].items()}
        yield KeyAccount(publisher=view.para_id, key=key, ending=became, **totals)


def _endings(view: PublisherView, ending: Ending, change: PublisherChange | None) -> list[KeyEnding]:
    keys = view.subscribed.keys
    if ending in _SAME_FOR_ALL or change is None:
        return [_SAME_FOR_ALL[ending]] * len(keys)
    endings = dict.fromkeys(keys, KeyEnding.UNCHANGED if change.finished else KeyEnding.NOT_REACHED)
    endings.update({key: KeyEnding.UNCHANGED for key, base in change.bases.items() if base == change.root})
    endings.update({key: KeyEnding.CHANGED for key, _ in change.changed})
    endings.update(dict.fromkeys(change.deleted, KeyEnding.DELETED))
    return list(endings.values())
