"""``childstate_*`` and child proofs; the child trie is named with its prefix, ``:child_storage:default:``."""

from itertools import islice

from relaycast_node.rpc.faces import StateFace
from relaycast_node.rpc.header_json import hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import U32, BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import client_error, state_discarded
from relaycast_node.rpc.served import Served
from relaycast_node.rpc.state_methods import listed_keys, read_proof
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import CHILD_STORAGE_PREFIX, blake2_256

GROUP = MethodGroup()


@GROUP.method("childstate_getStorage", "childstate_getStorageAt")
def get_storage(served: Served, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None) -> str | None:
    return hexed_or_null(_value(served, child_storage_key, key, at))


@GROUP.method("childstate_getStorageHash", "childstate_getStorageHashAt")
def get_storage_hash(
    served: Served, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None
) -> str | None:
    value = _value(served, child_storage_key, key, at)
    return None if value is None else hexed(blake2_256(value))


@GROUP.method("childstate_getStorageSize", "childstate_getStorageSizeAt")
def get_storage_size(
    served: Served, child_storage_key: HexBytes, key: HexBytes, at: BlockHash | None = None
) -> int | None:
    value = _value(served, child_storage_key, key, at)
    return None if value is None else len(value)


@GROUP.method("childstate_getStorageEntries", "childstate_getStorageEntriesAt")
def get_storage_entries(
    served: Served, child_storage_key: HexBytes, keys: list[HexBytes], at: BlockHash | None = None
) -> list[str | None]:
    child = _child(served, child_storage_key, at)
    return [hexed_or_null(child.get(key)) for key in keys]


@GROUP.method("childstate_getKeys", "childstate_getKeysAt")
def get_keys(served: Served, child_storage_key: HexBytes, prefix: HexBytes, at: BlockHash | None = None) -> list[str]:
    return listed_keys(_child(served, child_storage_key, at).keys(prefix))


@GROUP.method("childstate_getKeysPaged", "childstate_getKeysPagedAt")
def get_keys_paged(
    served: Served,
    child_storage_key: HexBytes,
    prefix: HexBytes | None,
    count: U32,
    start_key: HexBytes | None = None,
    at: BlockHash | None = None,
) -> list[str]:
    keys = _child(served, child_storage_key, at).keys(prefix or b"", after=start_key or None)
    return listed_keys(islice(keys, count))


@GROUP.method("state_getChildReadProof")
def get_child_read_proof(
    served: Served, child_storage_key: HexBytes, keys: list[HexBytes], at: BlockHash | None = None
) -> dict[str, object]:
    block = served.block(at)
    try:
        nodes = served.chain.prove_child(block.hash, _bare(child_storage_key), keys)
    except StateDiscarded:
        raise state_discarded(block.hash) from None
    return read_proof(block, nodes)


def _value(served: Served, child_storage_key: bytes, key: bytes, at: bytes | None) -> bytes | None:
    return _child(served, child_storage_key, at).get(key)


def _child(served: Served, child_storage_key: bytes, at: bytes | None) -> StateFace:
    return served.state(at).child(_bare(child_storage_key))


def _bare(child_storage_key: bytes) -> bytes:
    if not child_storage_key.startswith(CHILD_STORAGE_PREFIX):
        raise client_error("Invalid child storage key")
    return child_storage_key.removeprefix(CHILD_STORAGE_PREFIX)
