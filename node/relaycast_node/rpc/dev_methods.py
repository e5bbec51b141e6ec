"""``dev_*``: what only a development node has: blocks on demand, its pace, publications, proofs taken apart.

Block times are text: ``6s``, ``500ms``, ``manual``, or ``instant``, which is a block as soon as an extrinsic waits.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from relaycast_ledger.proof_picture import PicturedNode, PicturedTrie
from relaycast_node.block_time import block_time_of, block_time_text
from relaycast_node.rpc.author_methods import submitted
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, AnyJson, BlockHash, HexBytes, Misfit, ensure_known, reader_of
from relaycast_node.rpc.rpc_error import INVALID_PARAMS, RpcError, client_error, invalid_params
from relaycast_node.rpc.session import ClientLeft, RpcSession
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_trie import CHILD_STORAGE_PREFIX, blake2_256
from relaycast_trie.nibbles import digits
from relaycast_xcm import ParaId

GROUP = MethodGroup()

MOST_NEW_BLOCKS = 1_000
NEW_BLOCK_OPTIONS = ("count", "calls", "transactions")
KEY_BYTES = 32

_hex = reader_of(HexBytes)


@GROUP.session_method("dev_newBlock")
async def new_block(
    context: RpcContext, session: RpcSession, count: AnyJson = 1, calls: list[HexBytes] | None = None
) -> str:
    """Put ``calls`` (extrinsics) into the pool, build blocks, and return the hash of this chain's best block then.

    An object with both works too: ``{"count": 2, "calls": [..]}``. Other clients are served between two of the blocks,
    and may build blocks or move the head. If the client leaves, no further blocks are built.
    """
    if isinstance(count, dict):
        ensure_known("count", count, NEW_BLOCK_OPTIONS)
        wanted, calls = count.get("count", 1), _calls_in(count, calls)
    else:
        wanted = 1 if count is None else count
    number = _count(wanted)
    for call in calls or []:
        submitted(context, call)
        await session.rest()
    for index in range(number):
        if index and session.has_left():
            raise ClientLeft
        await context.clock.build()
    return hexed(context.chain.best.hash)


@GROUP.method("dev_setBlockTime")
def set_block_time(context: RpcContext, block_time: AnyJson) -> str:
    """Set the pace of the clock and return it as text; a number is milliseconds."""
    try:
        text = f"{block_time}ms" if type(block_time) is int else block_time
        context.clock.block_time = block_time_of(text if isinstance(text, str) else "")
    except ValueError as error:
        raise invalid_params("blockTime", block_time, str(error)) from None
    return block_time_text(context.clock.block_time)


@GROUP.method("dev_publish")
def publish(context: RpcContext, publisher: U32, key: str, value: HexBytes, ttl: U32 = 0) -> dict[str, object]:
    """Let a parachain send ``Publish`` with its next block; a ``key`` is 0x and 64 digits, or a name that is hashed."""
    chains = context.clock.chains
    if ParaId(publisher) not in chains.parachains:
        raise invalid_params("publisher", publisher, _one_of(map(int, chains.parachains)))
    published = _key_of(key)
    try:
        context.clock.publish(publisher, published, value, ttl=ttl)
    except ValueError as error:
        raise invalid_params("value", hexed(value), str(error)) from None
    return {"publisher": publisher, "key": hexed(published), "valueBytes": len(value), "ttl": ttl}


@GROUP.method("dev_publishers")
def publishers(context: RpcContext) -> list[dict[str, object]]:
    """Return who has published or may publish, as of the newest relay block, with the root of its child trie."""
    relay = context.clock.chains.relay_chain
    storage, state = relay.broadcaster.storage, context.clock.relay.state_at(context.clock.relay.best.hash)
    registered = dict(storage.registered_publishers.items())
    known = sorted({*registered, *(para_id for para_id, _ in storage.publisher_exists.items())})
    rows: list[dict[str, object]] = []
    for para_id in known:
        info, child = registered.get(para_id), derive_child_info(para_id)
        name = child.prefixed_storage_key()
        rows.append(
            {
                "paraId": int(para_id),
                "manager": None if info is None else hexed(info.manager),
                "deposit": None if info is None else hex(info.deposit),
                "keys": len(storage.keys_of(para_id)),
                "storedBytes": storage.size_of(para_id),
                "childStorageKey": hexed(name),
                "childRoot": hexed_or_null(state.get(name)),
            }
        )
    return rows


@GROUP.method("dev_readers")
def readers(context: RpcContext) -> list[dict[str, object]]:
    """Return who subscribes to what, and the proof of its newest block."""
    rows: list[dict[str, object]] = []
    for para_id, parachain in context.clock.chains.parachains.items():
        subscriptions, _ = parachain.subscriber.handler.subscriptions()
        if not subscriptions:
            continue
        last = context.proofs.last(para_id)
        rows.append(
            {
                "paraId": int(para_id),
                "block": parachain.head.number,
                "fullProofBytes": None if last is None else last.collation.collected.proof_bytes,
                "prunedProofBytes": None if last is None else last.block.inherent.proof_bytes,
                "updates": None if last is None else len(last.block.updates),
                "subscriptions": [
                    {"publisher": int(publisher), "keys": [hexed(key) for key in keys]}
                    for publisher, keys in subscriptions
                ],
            }
        )
    return rows


@GROUP.method("dev_proof")
def proof(context: RpcContext, at: BlockHash | None = None, para_id: U32 | None = None) -> dict[str, object]:
    """Return the relay proof in a parachain block, as collected and as pruned, and what each node is there for."""
    chain = context.chain
    if para_id is not None or chain.para_id is None:
        found = None if para_id is None else context.clock.parachains.get(para_id)
        if found is None:
            raise invalid_params("paraId", para_id, _one_of(context.clock.parachains))
        chain = found
    assert chain.para_id is not None
    block = chain.best if at is None else chain.block(at)
    if block is None:
        raise invalid_params("at", None if at is None else hexed(at), f"a block of parachain {chain.para_id}")
    number = block.header.number
    taken = context.proofs.proof_of(chain.para_id, number)
    if taken is None:
        kept = context.proofs.numbers(chain.para_id)
        raise client_error(f"no proof of block {number} is kept, only of {len(kept)} blocks from {kept.start} on")
    return {
        "paraId": int(taken.para_id),
        "block": {"number": number, "hash": hexed(block.hash)},
        "relayParent": {
            "number": taken.relay_parent_number,
            "hash": hexed(taken.relay_parent_hash),
            "stateRoot": hexed(taken.relay_parent_root),
        },
        "full": {"bytes": sum(map(len, taken.full)), "nodes": [hexed(node) for node in taken.full]},
        "pruned": {"bytes": sum(map(len, taken.pruned)), "nodes": [hexed(node) for node in taken.pruned]},
        "tries": [_trie_json(trie) for trie in taken.tries],
    }


@GROUP.method("dev_setStorage")
def set_storage(context: RpcContext, values: AnyJson, child_storage_key: HexBytes | None = None) -> int:
    """Write values into storage with the next block and return how many; ``null`` removes a key.

    ``values`` is a list of pairs ``[key, value]`` or an object. A child trie is named with its prefix.
    """
    pairs = list(values.items()) if isinstance(values, dict) else values
    if not isinstance(pairs, list):
        raise invalid_params("values", values, "pairs of key and value, or an object")
    written = dict(_pair(pair, f"values[{index}]") for index, pair in enumerate(pairs))
    name = None
    if child_storage_key is not None:
        if not child_storage_key.startswith(CHILD_STORAGE_PREFIX):
            raise client_error("Invalid child storage key")
        name = child_storage_key.removeprefix(CHILD_STORAGE_PREFIX)
    try:
        context.clock.set_storage(context.chain.para_id, written, child=name)
    except ValueError as error:
        raise RpcError(INVALID_PARAMS, "Invalid params", f"values: {error}") from None
    return len(written)


def _trie_json(trie: PicturedTrie) -> dict[str, object]:
    return {
        "publisher": None if trie.publisher is None else int(trie.publisher),
        "root": hexed(trie.root),
        "keys": [hexed(key) for key in trie.keys],
        "changed": [hexed(key) for key in trie.changed],
        "reason": trie.reason,
        "nodes": [_node_json(node) for node in trie.nodes],
    }


def _node_json(node: PicturedNode) -> dict[str, object]:
    return {
        "path": digits(node.prefix),
        "hash": hexed_or_null(node.node_hash),
        "bytes": node.node_bytes,
        "kind": "value" if node.is_value else "node",
        "cause": node.cause,
        "inProof": node.is_in_proof,
        "countedBefore": node.is_again,
    }


def _pair(pair: Any, place: str) -> tuple[bytes, bytes | None]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise invalid_params(place, pair, "a pair of key and value")
    try:
        return _hex(pair[0]), None if pair[1] is None else _hex(pair[1])
    except Misfit as misfit:
        raise invalid_params(place, misfit.got, misfit.expected) from None


def _calls_in(options: Mapping[str, Any], calls: list[bytes] | None) -> list[bytes] | None:
    given = options.get("calls", options.get("transactions"))
    if given is None:
        return calls
    try:
        found: list[bytes] = reader_of(list[HexBytes])(given)
    except Misfit as misfit:
        raise invalid_params(f"calls{misfit.place}", misfit.got, misfit.expected) from None
    return found


def _count(value: Any) -> int:
    try:
        number: int = reader_of(U32)(value)
    except Misfit:
        number = 0
    if not 1 <= number <= MOST_NEW_BLOCKS:
        raise invalid_params("count", value, f"a number of blocks from 1 to {MOST_NEW_BLOCKS:,}")
    return number


def _key_of(text: str) -> bytes:
    if text[:2] == "0x":
        try:
            key: bytes = _hex(text)
        except Misfit:
            key = b""
        if len(key) != KEY_BYTES:
            raise invalid_params("key", text, "0x and 64 hex digits, or a name")
        return key
    return blake2_256(text.encode())


def _one_of(para_ids: Iterable[int]) -> str:
    return f"the id of a parachain here: {', '.join(map(str, sorted(para_ids)))}"
