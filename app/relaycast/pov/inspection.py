"""Inspection of a parachain block: its bytes by purpose, the relay proof node by node, its messages, and the rest.

Law: every sum adds up. Each node of the proof counts in one part, the first that needs it in the order of ``PARTS``.
Nodes that no known key needs are separate from nodes that the root does not lead to.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from relaycast.pov.parachain_block import GivenRelayData, RawBlock
from relaycast.xray.nodes import Place, places
from relaycast_ledger.pov import compressed
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.well_known_keys import (
    hrmp_channel,
    static_relay_keys,
)
from relaycast_pallets.messaging.inbound_message import AbridgedMessages
from relaycast_trie import CHILD_STORAGE_PREFIX, Branch, CodecError, CompactProof, Leaf, ProofError, StorageProof
from relaycast_trie.hasher import twox_64_concat, twox_128
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node_codec import decode_node
from relaycast_trie.scale import encode_bytes, encode_vec
from relaycast_xcm import ParaId

STATIC, CHANNELS, TOP, PUBLISHERS, OTHER, UNUSED = (
    "static keys",
    "open channels",
    "way to publishers",
    "publishers",
    "other keys",
    "unused",
)
PARTS = (STATIC, CHANNELS, TOP, PUBLISHERS, OTHER, UNUSED)

ITEM_BYTES = 32
_OF_A_PARACHAIN = ITEM_BYTES + len(twox_64_concat(bytes(4)))
_CHANNELS = hrmp_channel(ParaId(0), ParaId(0))[:ITEM_BYTES]
_AUTHORITIES = tuple(twox_128(b"Babe") + twox_128(name) for name in (b"Authorities", b"NextAuthorities"))
"""Proven where a block's relay parent is not the newest relay block."""

_PUBSUB = derive_child_info(ParaId(0)).prefixed_storage_key()[:-4]


class ProofPart(Struct, frozen=True, kw_only=True):
    """Nodes of the relay proof, and external values, that one part needs."""

    part: str
    name: str
    """The publisher or key that it is for, where the part has several."""

    nodes: int
    proof_bytes: int


class MessageCount(Struct, frozen=True, kw_only=True):
    """Messages from the relay chain, or from the parachain ``sender``; hashed ones have an entry each."""

    sender: int | None
    full: int
    full_bytes: int
    hashed: int
    hashed_bytes: int


class Inspection(Struct, frozen=True, kw_only=True):
    """A parachain block taken apart; sizes in bytes."""

    number: int
    hash: str
    para_id: int | None
    """The id that the proof's keys name; ``None`` where they name none, or several."""

    form: str
    relay_parent_number: int
    relay_state_root: str
    max_pov_size: int
    block_bytes: int
    """The block as SCALE: the header, the body with the inherent. Its own state proof travels beside the block."""

    header_bytes: int
    inherent_bytes: int
    other_extrinsic_bytes: int
    """All other extrinsics, with the lengths before each."""

    other_extrinsics: int
    relay_proof_nodes: int
    relay_proof_bytes: int
    """Bytes of the nodes; in the inherent each has its length before it."""

    parts: list[ProofPart]
    messages: list[MessageCount]
    compact_bytes: int | None
    """The relay proof as a compact proof; ``None`` where nodes are missing, or stand at too many places."""

    zstd_bytes: int
    """The relay proof as it stands, compressed at the level of a PoV."""

    compact_zstd_bytes: int | None
    block_zstd_bytes: int
    descendants: int


def inspect_block(block: RawBlock) -> Inspection | None:
    """Inspect a block; returns ``None`` if no extrinsic holds the relay chain's data."""
    found = block.relay_data()
    if found is None:
        return None
    index, given = found
    header, inherent = block.header.encode(), encode_bytes(block.extrinsics[index])
    proof, root = StorageProof(given.nodes), given.validation_data.relay_parent_storage_root
    compact, walked = _compact(proof, root), list(places(proof, root))
    para_id = _para_id(walked)
    whole = header + encode_vec(map(encode_bytes, block.extrinsics))
    return Inspection(
        number=block.header.number,
        hash=f"0x{block.header.hash.hex()}",
        para_id=para_id,
        form=given.form,
        relay_parent_number=given.validation_data.relay_parent_number,
        relay_state_root=f"0x{root.hex()}",
        max_pov_size=given.validation_data.max_pov_size,
        block_bytes=len(whole),
        header_bytes=len(header),
        inherent_bytes=len(inherent),
        other_extrinsic_bytes=len(whole) - len(header) - len(inherent),
        other_extrinsics=len(block.extrinsics) - 1,
        relay_proof_nodes=len(given.nodes),
        relay_proof_bytes=sum(map(len, given.nodes)),
        parts=_parts(given, walked, para_id),
        messages=list(_messages(given)),
        compact_bytes=None if compact is None else compact.proof_bytes,
        zstd_bytes=len(compressed(proof.encode())),
        compact_zstd_bytes=None if compact is None else len(compressed(compact.to_bytes())),
        block_zstd_bytes=len(compressed(whole)),
        descendants=len(given.descendants),
    )


def _parts(given: GivenRelayData, walked: Sequence[Place], para_id: int | None) -> list[ProofPart]:
    """Return the parts of the proof, in the order of ``PARTS``; repeated nodes are unused."""
    known, left = _KnownKeys(para_id), Counter(given.nodes)
    reached: set[bytes] = set()
    nodes, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for place in walked:
        if place.node_hash is None or place.node_hash in reached:
            continue
        reached.add(place.node_hash)
        left[place.data] -= 1
        part = known.part_of(place)
        nodes[part] += 1
        sizes[part] += len(place.data)
    for node, times in left.items():
        nodes[UNUSED, ""] += times
        sizes[UNUSED, ""] += times * len(node)
    order = sorted(nodes, key=lambda it: (PARTS.index(it[0]), it[1]))
    return [ProofPart(part=it[0], name=it[1], nodes=nodes[it], proof_bytes=sizes[it]) for it in order if nodes[it]]


class _KnownKeys:
    """The keys that a block of a parachain is known to read, as nibbles."""

    def __init__(self, para_id: int | None) -> None:
        static = [*static_relay_keys(ParaId(0 if para_id is None else para_id)), *_AUTHORITIES]
        self._static = [to_nibbles(key) for key in static]
        self._channels = to_nibbles(_CHANNELS)
        self._pubsub = to_nibbles(_PUBSUB)

    def part_of(self, place: Place) -> tuple[str, str]:
        """Return the part that a node of the proof counts in, with its name."""
        if place.label:
            return PUBLISHERS, _trie_name(bytes.fromhex(place.label.removesuffix(":")))
        path = place.path
        if any(key.startswith(path) for key in self._static):
            return STATIC, ""
        if self._channels.startswith(path) or path.startswith(self._channels):
            return CHANNELS, ""
        if self._pubsub.startswith(path) or path.startswith(self._pubsub):
            return TOP, ""
        return OTHER, _item_name(path)


def _trie_name(storage_key: bytes) -> str:
    if storage_key.startswith(_PUBSUB) and len(storage_key) == len(_PUBSUB) + 4:
        return str(int.from_bytes(storage_key[len(_PUBSUB) :], "little"))
    return f"child trie 0x{storage_key.removeprefix(CHILD_STORAGE_PREFIX).hex()}"


def _item_name(path: bytes) -> str:
    """Return the storage item, or the known part of its key."""
    whole = from_nibbles(path[: len(path) // 2 * 2])
    return f"0x{whole[:ITEM_BYTES].hex()}"


def _para_id(walked: Iterable[Place]) -> int | None:
    """Return the parachain that most keys of the proof name."""
    named = Counter(_named(walked)).most_common(2)
    if not named or (len(named) == 2 and named[0][1] == named[1][1]):
        return None
    return named[0][0]


def _named(walked: Iterable[Place]) -> Iterator[int]:
    items = {key[:ITEM_BYTES] for key in static_relay_keys(ParaId(0)) if len(key) == _OF_A_PARACHAIN}
    for place in walked:
        key = None if place.label or place.is_value else _held_key(place)
        if key is not None and len(key) == _OF_A_PARACHAIN and key[:ITEM_BYTES] in items:
            yield int.from_bytes(key[-4:], "little")


def _held_key(place: Place) -> bytes | None:
    """Return the key whose value stands at a node."""
    try:
        node = decode_node(place.data)
    except CodecError:
        return None
    if not isinstance(node, Leaf | Branch) or node.value is None:
        return None
    path = place.path + node.partial
    return from_nibbles(path) if len(path) % 2 == 0 else None


def _messages(given: GivenRelayData) -> Iterator[MessageCount]:
    yield _count(None, given.messages.downward)
    horizontal = given.messages.horizontal
    full, hashed = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for message in horizontal.full:
        full[int(message.sender or 0)].append(len(message.data))
    for entry in horizontal.hashed:
        hashed[int(entry.sender or 0)].append(entry.encoded_bytes)
    for sender in sorted({*full, *hashed}):
        yield MessageCount(
            sender=sender,
            full=len(full[sender]),
            full_bytes=sum(full[sender]),
            hashed=len(hashed[sender]),
            hashed_bytes=sum(hashed[sender]),
        )


def _count(sender: int | None, messages: AbridgedMessages) -> MessageCount:
    return MessageCount(
        sender=sender,
        full=len(messages.full),
        full_bytes=messages.full_bytes,
        hashed=len(messages.hashed),
        hashed_bytes=messages.hashed_bytes,
    )


def _compact(proof: StorageProof, root: bytes) -> CompactProof | None:
    try:
        return CompactProof.encode(proof, root)
    except (ProofError, CodecError):
        return None
