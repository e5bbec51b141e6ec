"""``childstate_*`` and child proofs; the child trie is named with its prefix, ``:child_storage:default:``."""

from relaycast_node.rpc.chain_protocols import StateFace
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import client_error
from relaycast_node.rpc.session import RpcSession
from relaycast_node.rpc.state_methods import listed_keys, listed_pairs, opening, read_proof
from relaycast_node.rpc.storage_queries import OpenState, pairs_in_steps, values_in_steps
from relaycast_trie import CHILD_STORAGE_PREFIX, blake2_256

GROUP = MethodGroup()


@GROUP.method("childstate_getStorage", "childstate_getStorageAt")
def get_storage(
    context: RpcContext, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None
) -> str | None:
    return hexed_or_null(_value(context, child_storage_key, key, at))


@GROUP.method("childstate_getStorageHash", "childstate_getStorageHashAt")
def get_storage_hash(
    context: RpcContext, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None
) -> str | None:
    value = _value(context, child_storage_key, key, at)
    return None if value is None else hexed(blake2_256(value))


@GROUP.method("childstate_getStorageSize", "childstate_getStorageSizeAt")
def get_storage_size(
    context: RpcContext, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None
) -> int | None:
    value = _value(context, child_storage_key, key, at)
    return None if value is None else len(value)


@GROUP.session_method("childstate_getStorageEntries", "childstate_getStorageEntriesAt")
async def get_storage_entries(
    context: RpcContext,
    session: RpcSession,
    child_storage_key: HexBytes,
    keys: list[HexBytes],
    at: BlockHash | None = None,
) -> list[str | None]:
    child = _opening(context, child_storage_key, at)
    return [value for _, value in await listed_pairs(session.in_turns(values_in_steps(child, keys)))]


@GROUP.session_method("childstate_getKeys", "childstate_getKeysAt")
async def get_keys(
    context: RpcContext, session: RpcSession, child_storage_key: HexBytes, prefix: HexBytes, at: BlockHash | None = None
) -> list[str]:
    return await listed_keys(session.in_turns(pairs_in_steps(_opening(context, child_storage_key, at), prefix)))


@GROUP.session_method("childstate_getKeysPaged", "childstate_getKeysPagedAt")
async def get_keys_paged(
    context: RpcContext,
    session: RpcSession,
    child_storage_key: HexBytes,
    prefix: HexBytes | None,
    count: U32,
    start_key: HexBytes | None = None,
    at: BlockHash | None = None,
) -> list[str]:
    child = _opening(context, child_storage_key, at)
    return await listed_keys(session.in_turns(pairs_in_steps(child, prefix or b"", start_key or None)), most=count)


@GROUP.session_method("state_getChildReadProof")
async def get_child_read_proof(
    context: RpcContext,
    session: RpcSession,
    child_storage_key: HexBytes,
    keys: list[HexBytes],
    at: BlockHash | None = None,
) -> dict[str, object]:
    block, name = context.block(at), _bare(child_storage_key)
    return await read_proof(session, block, keys, lambda part: context.chain.prove_child(block.hash, name, part))


def _value(context: RpcContext, child_storage_key: bytes, key: bytes, at: bytes | None) -> bytes | None:
    return _child(context, child_storage_key, at).get(key)


def _child(context: RpcContext, child_storage_key: bytes, at: bytes | None) -> StateFace:
    return _opening(context, child_storage_key, at)()


def _opening(context: RpcContext, child_storage_key: bytes, at: bytes | None) -> OpenState:
    open_state, name = opening(context, at), _bare(child_storage_key)
    return lambda: open_state().child(name)


def _bare(child_storage_key: bytes) -> bytes:
    if not child_storage_key.startswith(CHILD_STORAGE_PREFIX):
        raise client_error("Invalid child storage key")
    return child_storage_key.removeprefix(CHILD_STORAGE_PREFIX)
