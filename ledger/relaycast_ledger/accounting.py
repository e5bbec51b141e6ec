"""What every byte of a block's relay proof is for, and what became of the rest of what was collected.

Law: every node counts once. The proof is its static nodes and those of each publisher by cause; what was collected
is the proof and what was pruned of it by reason. Bytes are those of nodes and external values as they stand in a
proof. A node that several publishers share counts with the first of them: the top trie's with the lowest id, the
others with the one that paid. A node that several keys share counts with the first of these.
"""

from collections.abc import Iterable, Mapping
from itertools import chain

from relaycast_ledger.account_records import BlockAccount, NodeTotals
from relaycast_ledger.publisher_book import Nodes, PublisherBook
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.processing_result import ProofProcessingResult
from relaycast_pallets.subscriber.tracked_proof import by_hash
from relaycast_trie import StorageProof
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.paths import descend
from relaycast_xcm import ParaId


def account_for(
    result: ProofProcessingResult,
    *,
    relay_root: bytes,
    proof: Iterable[bytes],
    collected: StorageProof,
    subscriber: Subscriber,
    callbacks: Mapping[ParaId, int],
    by_key: bool = False,
    by_node: bool = False,
    causes: dict[bytes, str] | None = None,
) -> BlockAccount:
    """Return the account of one pass over ``proof``, which was pruned from what was ``collected``.

    With ``by_key`` it also says what each key took, with ``by_node`` of each node with which key it counts; ``causes``
    learns, by hash, as what.
    """
    given = by_hash(proof)
    nodes = by_hash(collected.nodes) if collected.recorded is None else collected.recorded
    books = {para_id: PublisherBook(view, subscriber) for para_id, view in result.plan.views.items()}
    for change in result.changes:
        books[change.para_id].change = change
    pruned = {node_hash: len(data) for node_hash, data in nodes.items() if node_hash not in given}
    on_top = _follow_top(books, relay_root, nodes, pruned)
    read: set[bytes] = set()
    for entry in result.reads:
        if entry.source.is_relay:
            read.add(entry.node_hash)
        if entry.publisher is not None:
            books[entry.publisher].enter_read(entry, given)
        elif entry.node_hash in on_top:
            owner, depth = on_top[entry.node_hash]
            books[owner].enter_top(entry, depth)
    for book in books.values():
        book.enter_collected(nodes, pruned)
    if causes is not None:
        causes.update((node_hash, "static") for node_hash in given if node_hash not in read)
        causes.update((entry.node_hash, entry.cause) for book in books.values() for entry in book.entries)
    static = _total(len(data) for node_hash, data in given.items() if node_hash not in read)
    publishers = tuple(book.close(callbacks.get(para_id, 0)) for para_id, book in books.items())
    return BlockAccount(
        static,
        publishers,
        _total(pruned.values()),
        tuple(chain.from_iterable(map(PublisherBook.key_accounts, books.values()))) if by_key else (),
        tuple(chain.from_iterable(map(PublisherBook.node_uses, books.values()))) if by_node else (),
    )


def _follow_top(
    books: Mapping[ParaId, PublisherBook], relay_root: bytes, nodes: Nodes, pruned: dict[bytes, int]
) -> dict[bytes, tuple[ParaId, int]]:
    """Find every publisher's child root and return whose way there each node is on, and how deep it stands.

    The lowest id comes first.
    """
    on_top: dict[bytes, tuple[ParaId, int]] = {}
    for para_id in sorted(books):
        book = books[para_id]
        path = to_nibbles(derive_child_info(para_id).prefixed_storage_key())
        for reference, _, _, depth, _, _, _, value in descend((path,), relay_root, nodes):
            on_top.setdefault(reference, (para_id, depth))
            if reference in pruned:
                book.enter_pruned_top(reference, pruned.pop(reference), depth)
            if isinstance(value, bytes):
                book.child_root = value
    return on_top


def _total(sizes: Iterable[int]) -> NodeTotals:
    counted = list(sizes)
    return NodeTotals(len(counted), sum(counted))
