"""What a block's relay proof looks like, path by path: every node on the way to what its subscriber reads.

Law: the nodes that are in the proof, each counted once, are the proof; a node's ``cause`` is what the block's account
has it under. What was collected and left out is there too, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from relaycast_ledger.accounting import IN_THE_PROOF, BlockAccount
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.proof_pass import by_hash
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_trie import StorageProof
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue
from relaycast_trie.paths import descend
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_xcm import ParaId

STATIC = "static"

VALUE_BYTES_KEPT = 64
"""Bytes of an external value that are kept; a picture is for looking at."""


class PicturedNode(Struct, frozen=True):
    """A node or an external value at its place; ``prefix`` in nibbles, ``node_hash`` is ``None`` inside a parent."""

    prefix: bytes
    node_hash: bytes | None
    node_bytes: int
    data: bytes
    """The bytes themselves, of an external value only the first."""

    cause: str
    """As in ``PublisherAccount``: where in the proof, or why it is not there. An inline node has its parent's."""

    is_value: bool = False
    is_again: bool = False
    """Whether the same node stood at a place before: its bytes are in the proof once."""

    @property
    def is_in_proof(self) -> bool:
        """Whether the block carries it."""
        return self.cause == STATIC or self.cause in IN_THE_PROOF


class PicturedTrie(Struct, frozen=True):
    """The paths of one trie, the relay chain's own where ``publisher`` is ``None``; nodes before those below them."""

    publisher: ParaId | None
    root: bytes
    keys: tuple[bytes, ...]
    """What was asked for, in order; in a child trie all subscribed keys."""

    nodes: tuple[PicturedNode, ...]
    changed: tuple[bytes, ...] = ()
    """Keys whose entries the pass handed on, in the order of the pass."""

    reason: str = ""
    """How the pass left the publisher."""


class ProofPicture(Struct, frozen=True):
    """One block of one subscriber: the relay chain's top trie, then each publisher's."""

    tick: int
    para_id: ParaId
    relay_parent: int
    complete: bool
    proof_bytes: int
    static_bytes: int
    tries: tuple[PicturedTrie, ...]

    @property
    def pubsub_bytes(self) -> int:
        """The proof without what every block proves."""
        return self.proof_bytes - self.static_bytes


def picture_tries(
    result: ProofProcessingResult,
    account: BlockAccount,
    causes: Mapping[bytes, str],
    relay_root: bytes,
    static_keys: Iterable[bytes],
    collected: StorageProof,
) -> tuple[PicturedTrie, ...]:
    """Return the tries of one pass over what was ``collected``; ``causes`` are those of its ``account``, by hash."""
    nodes = by_hash(collected.nodes)
    seen: set[bytes] = set()
    roots = {para_id: derive_child_info(para_id).prefixed_storage_key() for para_id in result.plan.views}
    top_keys = tuple(sorted({*static_keys, *roots.values()}))
    top = PicturedTrie(None, relay_root, top_keys, tuple(_pictured(top_keys, relay_root, nodes, causes, seen)))
    tries = [top]
    changes = {change.para_id: change for change in result.changes}
    endings = {it.publisher: it.ending for it in account.publishers}
    child_roots = TrieDB(nodes, relay_root)
    for para_id, view in sorted(result.plan.views.items()):
        change = changes.get(para_id)
        root = child_roots.get(roots[para_id])
        if root is None:
            continue
        keys = tuple(map(bytes, view.subscribed.keys))
        changed = () if change is None else tuple(bytes(key) for key, _ in change.changed)
        found = tuple(_pictured(keys, root, nodes, causes, seen))
        tries.append(PicturedTrie(para_id, root, keys, found, changed, endings[para_id].value))
    return tuple(tries)


def _pictured(
    keys: tuple[bytes, ...], root: bytes, nodes: Mapping[bytes, bytes], causes: Mapping[bytes, str], seen: set[bytes]
) -> Iterator[PicturedNode]:
    """Yield what stands on the paths of ``keys``, as far as ``nodes`` reach, parents first."""
    paths = tuple(map(to_nibbles, keys))
    for reference, carrier, _, depth, low, _, first, value in descend(paths, root, nodes):
        is_inline = len(reference) != HASH_LENGTH
        data = reference if is_inline else nodes[reference]
        yield _node(paths[low][:depth], None if is_inline else reference, data, causes.get(carrier, ""), seen)
        if isinstance(value, HashedValue) and value.hash in nodes:
            yield _node(paths[first], value.hash, nodes[value.hash], causes.get(value.hash, ""), seen, is_value=True)


def _node(
    prefix: bytes, node_hash: bytes | None, data: bytes, cause: str, seen: set[bytes], *, is_value: bool = False
) -> PicturedNode:
    again = node_hash in seen
    if node_hash is not None:
        seen.add(node_hash)
    kept = data[:VALUE_BYTES_KEPT] if is_value else data
    return PicturedNode(prefix, node_hash, len(data), kept, cause, is_value, again)
