"""``author_*``: extrinsics into the pool, out of it, and what becomes of them."""

from typing import Any

import msgspec

from relaycast_node.extrinsic.extrinsic import extrinsic_hash, take_extrinsic
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_node.extrinsic.watchers import TransactionStatus
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import AnyJson, BlockHash, HexBytes, Misfit, reader_of
from relaycast_node.rpc.rpc_error import BAD_FORMAT, RpcError, invalid_params
from relaycast_node.rpc.session import Subscription
from relaycast_trie import CodecError

GROUP = MethodGroup()

_hash, _bytes = reader_of(BlockHash), reader_of(HexBytes)


@GROUP.method("author_submitExtrinsic")
def submit_extrinsic(context: RpcContext, extrinsic: HexBytes) -> str:
    return hexed(submitted(context, extrinsic))


@GROUP.method("author_pendingExtrinsics")
def pending_extrinsics(context: RpcContext) -> list[str]:
    return [hexed(data) for data in context.chain.pool.pending()]


@GROUP.method("author_removeExtrinsic")
def remove_extrinsic(context: RpcContext, bytes_or_hash: list[AnyJson]) -> list[str]:
    """Remove extrinsics and ban them for a while; each is ``{"hash": ..}`` or ``{"extrinsic": ..}``."""
    hashes = [_hash_in(it, f"bytesOrHash[{index}]") for index, it in enumerate(bytes_or_hash)]
    return [hexed(it) for it in context.chain.remove(hashes)]


@GROUP.subscription(
    "author_submitAndWatchExtrinsic",
    notification="author_extrinsicUpdate",
    unsubscribe=("author_unwatchExtrinsic",),
)
def submit_and_watch(context: RpcContext, subscription: Subscription, extrinsic: HexBytes) -> None:
    def hear(status: TransactionStatus) -> None:
        name, detail = status.kind.value, status.hash
        subscription.send(msgspec.json.encode(name if detail is None else {name: hexed(detail)}))

    subscription.on_close(context.chain.pool.watch(extrinsic_hash(extrinsic), hear))
    submitted(context, extrinsic)


def submitted(context: RpcContext, extrinsic: bytes) -> bytes:
    """Put an extrinsic into the pool and return its hash; raises ``RpcError`` with the pool's reason."""
    try:
        return context.chain.submit(extrinsic)
    except PoolError as error:
        raise RpcError(error.code, error.message, error.data) from None
    except CodecError as error:
        raise RpcError(BAD_FORMAT, f"Extrinsic has invalid format: {error}") from None


def _hash_in(given: Any, place: str) -> bytes:
    expected = '{"hash": ..} or {"extrinsic": ..}'
    if not isinstance(given, dict) or len(given) != 1:
        raise invalid_params(place, given, expected)
    ((name, value),) = given.items()
    if name not in {"hash", "extrinsic"}:
        raise invalid_params(place, name, expected)
    try:
        found: bytes = (_hash if name == "hash" else _bytes)(value)
    except Misfit as misfit:
        raise invalid_params(f"{place}.{name}", misfit.got, misfit.expected) from None
    if name == "hash":
        return found
    try:
        take_extrinsic(found)
    except CodecError as error:
        raise RpcError(BAD_FORMAT, f"Extrinsic has invalid format: {error}") from None
    return extrinsic_hash(found)
