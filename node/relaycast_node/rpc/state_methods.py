"""``state_*``: storage at any block, proofs, metadata, the runtime, and subscriptions to storage."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from relaycast_node.chain.code import CODE
from relaycast_node.rpc.chain_protocols import BlockFace, Changes
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import (
    INVALID_BLOCK_RANGE,
    INVALID_COUNT,
    INVALID_PARAMS,
    TOO_BIG_RESPONSE,
    RpcError,
    over_limit,
    state_discarded,
)
from relaycast_node.rpc.session import RpcSession, Subscription
from relaycast_node.rpc.storage_queries import OpenState, pairs_in_steps, parts_of, values_in_steps
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import blake2_256

GROUP = MethodGroup()

MOST_PAGED_KEYS = 1_000
"""Keys in one page, as a node limits it."""

MOST_LISTED_BYTES = 7 * 1024 * 1024
"""Bytes of keys and values that one answer without pages may list. In hexadecimal they are twice as long."""

MOST_QUERIED = 1_000_000
"""Limit of keys times blocks in one ``state_queryStorage``."""

Pair = tuple[str, str | None]


@GROUP.method("state_getStorage", "state_getStorageAt")
def get_storage(context: RpcContext, key: HexBytes, at: BlockHash | None = None) -> str | None:
    return hexed_or_null(context.state(at).get(key))


@GROUP.method("state_getStorageHash", "state_getStorageHashAt")
def get_storage_hash(context: RpcContext, key: HexBytes, at: BlockHash | None = None) -> str | None:
    value = context.state(at).get(key)
    return None if value is None else hexed(blake2_256(value))


@GROUP.session_method("state_getStorageSize", "state_getStorageSizeAt")
async def get_storage_size(
    context: RpcContext, session: RpcSession, key: HexBytes, at: BlockHash | None = None
) -> int | None:
    """Return the size of a value, or of all values under a prefix."""
    open_state = opening(context, at)
    value = open_state().get(key)
    if value is not None:
        return len(value)
    size = 0
    async for _, below in session.in_turns(pairs_in_steps(open_state, key)):
        size += len(below)
    return size or None


@GROUP.session_method("state_getKeys")
async def get_keys(
    context: RpcContext, session: RpcSession, prefix: HexBytes, at: BlockHash | None = None
) -> list[str]:
    return await listed_keys(session.in_turns(pairs_in_steps(opening(context, at), prefix)))


@GROUP.method("state_getKeysPaged", "state_getKeysPagedAt")
def get_keys_paged(
    context: RpcContext,
    prefix: HexBytes | None = None,
    count: U32 = MOST_PAGED_KEYS,
    start_key: HexBytes | None = None,
    at: BlockHash | None = None,
) -> list[str]:
    if count > MOST_PAGED_KEYS:
        raise RpcError(INVALID_COUNT, f"count exceeds maximum value. value: {count}, max: {MOST_PAGED_KEYS}")
    keys = context.state(at).keys(prefix or b"", after=start_key or None)
    return [hexed(key) for key in islice(keys, count)]


@GROUP.session_method("state_getPairs")
async def get_pairs(
    context: RpcContext, session: RpcSession, prefix: HexBytes, at: BlockHash | None = None
) -> list[Pair]:
    return await listed_pairs(session.in_turns(pairs_in_steps(opening(context, at), prefix)))


@GROUP.method("state_getMetadata")
def get_metadata(context: RpcContext, at: BlockHash | None = None) -> str:
    """Return the metadata in the version that a node gives. Clients get others with ``state_call``."""
    return context.metadata_text(at)


@GROUP.method("state_getRuntimeVersion", "chain_getRuntimeVersion")
def get_runtime_version(context: RpcContext, at: BlockHash | None = None) -> dict[str, object]:
    return context.version(at)


@GROUP.method("state_call", "state_callAt")
def call(context: RpcContext, method: str, data: HexBytes, at: BlockHash | None = None) -> str:
    return hexed(context.call(method, data, at))


@GROUP.session_method("state_getReadProof")
async def get_read_proof(
    context: RpcContext, session: RpcSession, keys: list[HexBytes], at: BlockHash | None = None
) -> dict[str, object]:
    block = context.block(at)
    return await read_proof(session, block, keys, lambda part: context.chain.prove(block.hash, part))


@GROUP.session_method("state_queryStorageAt")
async def query_storage_at(
    context: RpcContext, session: RpcSession, keys: list[HexBytes], at: BlockHash | None = None
) -> list[dict[str, object]]:
    block = context.block(at)
    wanted = list(dict.fromkeys(keys))
    pairs = await listed_pairs(session.in_turns(values_in_steps(opening(context, block.hash), wanted)))
    return [_change_set(block, pairs)] if pairs else []


@GROUP.session_method("state_queryStorage")
async def query_storage(
    context: RpcContext,
    session: RpcSession,
    keys: list[HexBytes],
    from_block: BlockHash,
    to_block: BlockHash | None = None,
) -> list[dict[str, object]]:
    """Return what the keys held in the first block, then what changed in each block up to the last."""
    wanted = _places(keys)
    blocks = await _range(context, session, from_block, to_block, keys=len(wanted))
    at_first = session.in_turns(values_in_steps(opening(context, blocks[0].hash), list(wanted)))
    last = {key: value async for key, value in at_first}
    sets, room = list[dict[str, object]](), MOST_LISTED_BYTES
    for block in blocks:
        if block is blocks[0]:
            changed = list(last.items())
        else:
            changed = [(key, value) for key, value in _among(wanted, block.changes) if value != last[key]]
        last.update(changed)
        if changed:
            room -= sum(len(key) + len(value or b"") for key, value in changed)
            _ensure_room(room)
            sets.append(_change_set(block, _in_hex(changed)))
        await session.rest()
    return sets


@GROUP.subscription("state_subscribeStorage", notification="state_storage", unsubscribe=("state_unsubscribeStorage",))
def subscribe_storage(context: RpcContext, subscription: Subscription, keys: list[HexBytes] | None = None) -> None:
    """Send what the keys hold now, then what blocks change of them; without ``keys`` everything that changes."""
    wanted = None if keys is None else _places(keys)
    if wanted:
        state, best = context.state(None), context.chain.best
        subscription.send(msgspec.json.encode(_change_set(best, _in_hex((key, state.get(key)) for key in wanted))))

    def hear(block: BlockFace, changes: Changes) -> None:
        found = list(changes.items()) if wanted is None else _among(wanted, changes)
        if found:
            subscription.send(msgspec.json.encode(_change_set(block, _in_hex(found))))

    subscription.on_close(context.follow_best(hear))


@GROUP.subscription(
    "state_subscribeRuntimeVersion",
    "chain_subscribeRuntimeVersion",
    notification="state_runtimeVersion",
    unsubscribe=("state_unsubscribeRuntimeVersion", "chain_unsubscribeRuntimeVersion"),
)
def subscribe_runtime_version(context: RpcContext, subscription: Subscription) -> None:
    """Send the version of the chain's code, and each other one that a block brings."""
    sent = context.version(None)
    subscription.send(msgspec.json.encode(sent))

    def hear(block: BlockFace, changes: Changes) -> None:
        nonlocal sent
        if CODE in changes and (found := context.version(block.hash)) != sent:
            sent = found
            subscription.send(msgspec.json.encode(sent))

    subscription.on_close(context.follow_best(hear))


def opening(context: RpcContext, at: bytes | None) -> OpenState:
    """Return a function that opens a block's state, that of the current best block for ``None``."""
    block_hash = context.block(at).hash
    return lambda: context.state(block_hash)


async def read_proof(
    session: RpcSession, block: BlockFace, keys: list[bytes], prove: Callable[[list[bytes]], Iterable[bytes]]
) -> dict[str, object]:
    """Return the nodes that ``prove`` some keys each; raises ``RpcError`` for more than fit into an answer."""
    nodes, room = dict[bytes, None](), MOST_LISTED_BYTES
    for part in parts_of(keys) if keys else [keys]:
        try:
            more = prove(part)
        except StateDiscarded:
            raise state_discarded(block.hash) from None
        for node in more:
            if node not in nodes:
                nodes[node] = None
                room -= len(node)
        _ensure_room(room)
        await session.rest()
    return {"at": hexed(block.hash), "proof": [hexed(node) for node in nodes]}


async def listed_keys(pairs: AsyncIterator[tuple[bytes, bytes]], *, most: int | None = None) -> list[str]:
    """Return ``most`` keys at most in hexadecimal; raises ``RpcError`` for more than fit into an answer."""
    found: list[str] = []
    room = MOST_LISTED_BYTES
    if most == 0:
        return found
    async for key, _ in pairs:
        found.append(hexed(key))
        room -= len(key)
        _ensure_room(room)
        if len(found) == most:
            break
    return found


async def listed_pairs(pairs: AsyncIterator[tuple[bytes, bytes | None]]) -> list[Pair]:
    """Return keys and values in hexadecimal; raises ``RpcError`` for more than fit into an answer."""
    found: list[Pair] = []
    room = MOST_LISTED_BYTES
    async for key, value in pairs:
        found.append((hexed(key), hexed_or_null(value)))
        room -= len(key) + len(value or b"")
        _ensure_room(room)
    return found


def _in_hex(pairs: Iterable[tuple[bytes, bytes | None]]) -> list[Pair]:
    return [(hexed(key), hexed_or_null(value)) for key, value in pairs]


def _places(keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return each key with its index."""
    return {key: place for place, key in enumerate(dict.fromkeys(keys))}


def _among(wanted: Mapping[bytes, int], changes: Changes) -> list[tuple[bytes, bytes | None]]:
    """Return the changes of the wanted keys, in their order; time grows with the smaller of both."""
    if len(wanted) <= len(changes):
        return [(key, changes[key]) for key in wanted if key in changes]
    return sorted(((key, value) for key, value in changes.items() if key in wanted), key=lambda it: wanted[it[0]])


def _ensure_room(room: int) -> None:
    if room < 0:
        raise over_limit(TOO_BIG_RESPONSE, "Response is too big", 2 * MOST_LISTED_BYTES)


def _change_set(block: BlockFace, changes: Sequence[Pair]) -> dict[str, object]:
    return {"block": hexed(block.hash), "changes": changes}


async def _range(
    context: RpcContext, session: RpcSession, first: bytes, last: bytes | None, *, keys: int
) -> list[BlockFace]:
    """Return the blocks ``first`` to ``last``, by parents; ``RpcError`` for too many blocks times ``keys``."""
    chain = context.chain
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
    count = end.header.number - start.header.number + 1
    if keys * count > MOST_QUERIED:
        got = f"got {keys:,} keys in {count:,} blocks"
        raise RpcError(
            INVALID_PARAMS, "Invalid params", f"keys: {got}, expected keys times blocks of at most {MOST_QUERIED:,}"
        )
    blocks = [end]
    while blocks[-1].header.number > start.header.number:
        await session.rest()
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
