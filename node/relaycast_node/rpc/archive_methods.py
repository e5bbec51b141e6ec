"""``archive_v1_*``: any block that the node has, without following the chain (JSON-RPC interface spec)."""

from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice
from typing import Any

import msgspec

from relaycast_node.chain.exceptions import ChainRefusal, UnknownBlock
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, AnyJson, BlockHash, HexBytes, Misfit, ensure_known, reader_of
from relaycast_node.rpc.rpc_error import invalid_params
from relaycast_node.rpc.session import Subscription
from relaycast_node.rpc.storage_queries import HASH, KEYS_OF_A_STEP, VALUE, StorageQuery, StorageView, queries_of
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import blake2_256
from relaycast_trie.exceptions import MissingNode

GROUP = MethodGroup()

STORAGE_EVENT, DIFF_EVENT = "archive_v1_storageEvent", "archive_v1_storageDiffEvent"

_hex = reader_of(HexBytes)

Wanted = tuple[bytes, str, bytes | None]
"""Keys under a prefix, each with its value or hash, in a child trie or the top trie."""


@GROUP.method("archive_v1_finalizedHeight")
def finalized_height(context: RpcContext) -> int:
    return context.chain.finalized.header.number


@GROUP.method("archive_v1_genesisHash")
def genesis_hash(context: RpcContext) -> str:
    return hexed(context.chain.genesis_hash)


@GROUP.method("archive_v1_hashByHeight")
def hash_by_height(context: RpcContext, height: U32) -> list[str]:
    """Return the blocks of this height: one up to the finalized height, all known ones above it."""
    return [hexed(it) for it in context.chain.hashes_at(height)]


@GROUP.method("archive_v1_header")
def header(context: RpcContext, at: BlockHash) -> str | None:
    block = context.chain.block(at)
    return None if block is None else hexed(block.header.encode())


@GROUP.method("archive_v1_body")
def body(context: RpcContext, at: BlockHash) -> list[str] | None:
    block = context.chain.block(at)
    return None if block is None else [hexed(it) for it in block.extrinsics]


@GROUP.method("archive_v1_call")
def call(context: RpcContext, at: BlockHash, function: str, call_parameters: HexBytes) -> dict[str, object] | None:
    """Return the result or error of a runtime call; ``null`` for an unknown block."""
    try:
        output = context.chain.call(function, call_parameters, at)
    except UnknownBlock:
        return None
    except ChainRefusal as refusal:
        return {"success": False, "error": str(refusal)}
    return {"success": True, "value": hexed(output)}


@GROUP.subscription("archive_v1_storage", notification=STORAGE_EVENT, unsubscribe=("archive_v1_stopStorage",))
def storage(
    context: RpcContext,
    subscription: Subscription,
    at: BlockHash,
    items: list[AnyJson],
    child_trie: HexBytes | None = None,
) -> None:
    """Tell storage items of a block one by one, then that there are no more."""
    queries = queries_of(items, are_paged=True)
    subscription.stream(_encoded(_storage_events(context, at, queries, child_trie)))


def _encoded(events: Iterator[dict[str, object] | None]) -> Iterator[bytes | None]:
    return (None if event is None else msgspec.json.encode(event) for event in events)


def _storage_events(
    context: RpcContext, at: bytes, queries: list[StorageQuery], child: bytes | None
) -> Iterator[dict[str, object] | None]:
    if context.chain.block(at) is None:
        yield {"event": "storageError", "error": f"there is no block {hexed(at)}"}
        return
    try:
        for item in StorageView(context.chain, at, child).items(queries):
            yield None if item is None else {"event": "storage", **item, **_of_child(child)}
    except StateDiscarded as discarded:
        yield {"event": "storageError", "error": str(discarded)}
        return
    except MissingNode as error:
        yield {"event": "storageError", "error": f"MissingNode: {error}"}
        return
    yield {"event": "storageDone"}


@GROUP.subscription(
    "archive_v1_storageDiff",
    notification=DIFF_EVENT,
    unsubscribe=("archive_v1_stopStorageDiff", "archive_v1_storageDiff_stopStorageDiff"),
)
def storage_diff(
    context: RpcContext,
    subscription: Subscription,
    at: BlockHash,
    items: list[AnyJson] | None = None,
    previous_hash: BlockHash | None = None,
) -> None:
    """Tell which keys differ from another block, by default the parent; without ``items`` all of the top trie.

    A deleted key comes with its former value, as a Substrate node tells it, which also calls the method that ends this
    ``archive_v1_storageDiff_stopStorageDiff``.
    """
    wanted = [
        _wanted(item, f"items[{index}]") for index, item in enumerate(items or [{"key": "0x", "returnType": VALUE}])
    ]
    subscription.stream(_encoded(_diff_events(context, at, previous_hash, wanted)))


def _diff_events(
    context: RpcContext, at: bytes, previous_hash: bytes | None, wanted: list[Wanted]
) -> Iterator[dict[str, object] | None]:
    block = context.chain.block(at)
    before = previous_hash if block is None or previous_hash is not None else block.header.parent_hash
    missing = at if block is None or before is None else before
    if block is None or before is None or context.chain.block(before) is None:
        yield {"event": "storageDiffError", "error": f"there is no block {hexed(missing)}"}
        return
    try:
        for prefix, kind, child in wanted:
            for change in _changes(
                StorageView(context.chain, at, child), StorageView(context.chain, before, child), prefix, kind
            ):
                yield None if change is None else {"event": "storageDiff", **change, **_of_child(child)}
    except StateDiscarded as discarded:
        yield {"event": "storageDiffError", "error": str(discarded)}
        return
    except MissingNode as error:
        yield {"event": "storageDiffError", "error": f"MissingNode: {error}"}
        return
    yield {"event": "storageDiffDone"}


def _wanted(item: Any, place: str) -> Wanted:
    """Return the prefix, kind and child trie of one item."""
    if not isinstance(item, dict):
        raise invalid_params(place, item, "an object with key and returnType")
    ensure_known(place, item, ("key", "returnType", "childTrieKey"))
    kind = item.get("returnType", VALUE)
    if kind not in (VALUE, HASH):  # not a set: lists and objects have no hash
        raise invalid_params(f"{place}.returnType", kind, "value or hash")
    child = item.get("childTrieKey")
    key = _bytes_in(item.get("key", "0x"), f"{place}.key")
    return key, kind, None if child is None else _bytes_in(child, f"{place}.childTrieKey")


def _bytes_in(value: Any, place: str) -> bytes:
    try:
        data: bytes = _hex(value)
    except Misfit as misfit:
        raise invalid_params(place, misfit.got, misfit.expected) from None
    return data


def _changes(new: StorageView, old: StorageView, prefix: bytes, kind: str) -> Iterator[dict[str, object] | None]:
    """Yield the differences under a prefix, ``None`` after a step."""
    after: bytes | None = None
    while True:
        now, then = new.state(), old.state()
        keys = groupby(merge(now.keys(prefix, after=after), then.keys(prefix, after=after)))
        step = [(key, now.get(key), then.get(key)) for key, _ in islice(keys, KEYS_OF_A_STEP)]
        yield from [_change(key, value, before, kind) for key, value, before in step if value != before]
        if len(step) < KEYS_OF_A_STEP:
            return
        after = step[-1][0]
        yield None


def _change(key: bytes, value: bytes | None, before: bytes | None, kind: str) -> dict[str, object]:
    name = "added" if before is None else "deleted" if value is None else "modified"
    shown = before if value is None else value
    assert shown is not None
    return {"key": hexed(key), "type": name, kind: hexed(shown if kind == VALUE else blake2_256(shown))}


def _of_child(child: bytes | None) -> dict[str, object]:
    return {} if child is None else {"childTrieKey": hexed(child)}
