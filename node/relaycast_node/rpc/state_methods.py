"""``state_*``: storage at any block, proofs, metadata, the runtime, and subscriptions to storage."""

from collections.abc import Iterable
from itertools import islice

import msgspec

from relaycast_node.chain.code import CODE
from relaycast_node.rpc.faces import BlockFace, Changes
from relaycast_node.rpc.header_json import hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import (
    INVALID_BLOCK_RANGE,
    INVALID_COUNT,
    TOO_BIG_RESPONSE,
    RpcError,
    over_limit,
    state_discarded,
)
from relaycast_node.rpc.served import Served
from relaycast_node.rpc.session import Subscription
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import blake2_256

GROUP = MethodGroup()

MOST_PAGED_KEYS = 1_000
"""Keys in one page, as a node limits it."""

MOST_LISTED_BYTES = 7 * 1024 * 1024
"""Bytes of keys and values that one answer without pages may list. In hexadecimal they are twice as long."""

Pair = tuple[str, str | None]


@GROUP.method("state_getStorage", "state_getStorageAt")
def get_storage(served: Served, key: HexBytes, at: BlockHash | None = None) -> str | None:
    return hexed_or_null(served.state(at).get(key))


@GROUP.method("state_getStorageHash", "state_getStorageHashAt")
def get_storage_hash(served: Served, key: HexBytes, at: BlockHash | None = None) -> str | None:
    value = served.state(at).get(key)
    return None if value is None else hexed(blake2_256(value))


@GROUP.method("state_getStorageSize", "state_getStorageSizeAt")
def get_storage_size(served: Served, key: HexBytes, at: BlockHash | None = None) -> int | None:
    """Return the size of a value, or of all values under a prefix."""
    state = served.state(at)
    value = state.get(key)
    if value is not None:
        return len(value)
    return sum(len(it) for _, it in state.pairs(key)) or None


@GROUP.method("state_getKeys")
def get_keys(served: Served, prefix: HexBytes, at: BlockHash | None = None) -> list[str]:
    return listed_keys(served.state(at).keys(prefix))


@GROUP.method("state_getKeysPaged", "state_getKeysPagedAt")
def get_keys_paged(
    served: Served,
    prefix: HexBytes | None = None,
    count: U32 = MOST_PAGED_KEYS,
    start_key: HexBytes | None = None,
    at: BlockHash | None = None,
) -> list[str]:
    if count > MOST_PAGED_KEYS:
        raise RpcError(INVALID_COUNT, f"count exceeds maximum value. value: {count}, max: {MOST_PAGED_KEYS}")
    keys = served.state(at).keys(prefix or b"", after=start_key or None)
    return [hexed(key) for key in islice(keys, count)]


@GROUP.method("state_getPairs")
def get_pairs(served: Served, prefix: HexBytes, at: BlockHash | None = None) -> list[Pair]:
    found: list[Pair] = []
    room = MOST_LISTED_BYTES
    for key, value in served.state(at).pairs(prefix):
        found.append((hexed(key), hexed(value)))
        room -= len(key) + len(value)
        _ensure_room(room)
    return found


@GROUP.method("state_getMetadata")
def get_metadata(served: Served, at: BlockHash | None = None) -> str:
    """Return the metadata in the version that a node gives. Clients get others with ``state_call``."""
    return served.metadata_text(at)


@GROUP.method("state_getRuntimeVersion", "chain_getRuntimeVersion")
def get_runtime_version(served: Served, at: BlockHash | None = None) -> dict[str, object]:
    return served.version(at)


@GROUP.method("state_call", "state_callAt")
def call(served: Served, method: str, data: HexBytes, at: BlockHash | None = None) -> str:
    return hexed(served.call(method, data, at))


@GROUP.method("state_getReadProof")
def get_read_proof(served: Served, keys: list[HexBytes], at: BlockHash | None = None) -> dict[str, object]:
    block = served.block(at)
    try:
        nodes = served.chain.prove(block.hash, keys)
    except StateDiscarded:
        raise state_discarded(block.hash) from None
    return read_proof(block, nodes)


@GROUP.method("state_queryStorageAt")
def query_storage_at(served: Served, keys: list[HexBytes], at: BlockHash | None = None) -> list[dict[str, object]]:
    block = served.block(at)
    state = served.state(at)
    changes = [(key, state.get(key)) for key in dict.fromkeys(keys)]
    return [_change_set(block, changes)] if changes else []


@GROUP.method("state_queryStorage")
def query_storage(
    served: Served, keys: list[HexBytes], from_block: BlockHash, to_block: BlockHash | None = None
) -> list[dict[str, object]]:
    """Return what the keys held in the first block, then what changed in each block up to the last."""
    blocks = _range(served, from_block, to_block)
    wanted = list(dict.fromkeys(keys))
    state = served.state(blocks[0].hash)
    last = {key: state.get(key) for key in wanted}
    sets = [_change_set(blocks[0], last.items())] if last else []
    for block in blocks[1:]:
        written = [(key, block.changes[key]) for key in wanted if key in block.changes]
        changed = [(key, value) for key, value in written if value != last[key]]
        if changed:
            last.update(changed)
            sets.append(_change_set(block, changed))
    return sets


@GROUP.subscription("state_subscribeStorage", notification="state_storage", unsubscribe=("state_unsubscribeStorage",))
def subscribe_storage(served: Served, subscription: Subscription, keys: list[HexBytes] | None = None) -> None:
    """Send what the keys hold now, then what blocks change of them; without ``keys`` everything that changes."""
    wanted = None if keys is None else list(dict.fromkeys(keys))
    if wanted:
        state, best = served.state(None), served.chain.best
        subscription.send(msgspec.json.encode(_change_set(best, [(key, state.get(key)) for key in wanted])))

    def hear(block: BlockFace, changes: Changes) -> None:
        found = list(changes.items()) if wanted is None else [(it, changes[it]) for it in wanted if it in changes]
        if found:
            subscription.send(msgspec.json.encode(_change_set(block, found)))

    subscription.on_close(served.follow_best(hear))


@GROUP.subscription(
    "state_subscribeRuntimeVersion",
    "chain_subscribeRuntimeVersion",
    notification="state_runtimeVersion",
    unsubscribe=("state_unsubscribeRuntimeVersion", "chain_unsubscribeRuntimeVersion"),
)
def subscribe_runtime_version(served: Served, subscription: Subscription) -> None:
    """Send the version of the chain's code, and each other one that a block brings."""
    sent = served.version(None)
    subscription.send(msgspec.json.encode(sent))

    def hear(block: BlockFace, changes: Changes) -> None:
        nonlocal sent
        if CODE in changes and (found := served.version(block.hash)) != sent:
            sent = found
            subscription.send(msgspec.json.encode(sent))

    subscription.on_close(served.follow_best(hear))


def read_proof(block: BlockFace, nodes: Iterable[bytes]) -> dict[str, object]:
    return {"at": hexed(block.hash), "proof": [hexed(node) for node in nodes]}


def listed_keys(keys: Iterable[bytes]) -> list[str]:
    """Return keys in hexadecimal; raises ``RpcError`` for more than fit into an answer."""
    found: list[str] = []
    room = MOST_LISTED_BYTES
    for key in keys:
        found.append(hexed(key))
        room -= len(key)
        _ensure_room(room)
    return found


def _ensure_room(room: int) -> None:
    if room < 0:
        raise over_limit(TOO_BIG_RESPONSE, "Response is too big", 2 * MOST_LISTED_BYTES)


def _change_set(block: BlockFace, changes: Iterable[tuple[bytes, bytes | None]]) -> dict[str, object]:
    return {"block": hexed(block.hash), "changes": [(hexed(key), hexed_or_null(value)) for key, value in changes]}


def _range(served: Served, first: bytes, last: bytes | None) -> list[BlockFace]:
    """Return the blocks from ``first`` to ``last``, by their parents."""
    chain = served.chain
    end = chain.best if last is None else chain.block(last)
    start = chain.block(first)
    if start is None or end is None:
        missing = first if start is None else last
        assert missing is not None
        reason = f"UnknownBlock: Header was not found in the database: {hexed(missing)}"
        to = "None" if last is None else f"Some({hexed(last)})"
        raise _invalid_range(hexed(first), to, reason)
    first_name, last_name = (f"{it.header.number} ({hexed(it.hash)})" for it in (start, end))
    if start.header.number > end.header.number:
        raise _invalid_range(first_name, last_name, "from number > to number")
    blocks = [end]
    while blocks[-1].header.number > start.header.number:
        parent = chain.block(blocks[-1].header.parent_hash)
        if parent is None:
            reason = f"UnknownBlock: Header was not found in the database: {hexed(blocks[-1].header.parent_hash)}"
            raise _invalid_range(first_name, last_name, reason)
        blocks.append(parent)
    if blocks[-1].hash != start.hash:
        raise _invalid_range(first_name, last_name, "from and to are on different forks")
    return blocks[::-1]


def _invalid_range(first: str, last: str, reason: str) -> RpcError:
    message = f'Cannot resolve a block range [\'"{first}"\' ... \'"{last}"]. {reason}'
    return RpcError(INVALID_BLOCK_RANGE, message)
