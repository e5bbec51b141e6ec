"""``chain_*``: blocks, headers, hashes, and subscriptions to heads."""

import msgspec

from relaycast_node.rpc.context import HeadFeed, RpcContext
from relaycast_node.rpc.header_json import header_json, hexed, hexed_or_null
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import BigNumber, BlockHash
from relaycast_node.rpc.rpc_error import OTHER_CHAIN_ERROR, RpcError
from relaycast_node.rpc.session import Subscription
from relaycast_xcm.primitives import U32_MAX

GROUP = MethodGroup()


@GROUP.method("chain_getHeader")
def get_header(context: RpcContext, at: BlockHash | None = None) -> dict[str, object] | None:
    block = context.chain.best if at is None else context.chain.block(at)
    return None if block is None else header_json(block.header)


@GROUP.method("chain_getBlock")
def get_block(context: RpcContext, at: BlockHash | None = None) -> dict[str, object] | None:
    block = context.chain.best if at is None else context.chain.block(at)
    if block is None:
        return None
    body = {"header": header_json(block.header), "extrinsics": [hexed(it) for it in block.extrinsics]}
    return {"block": body, "justifications": None}


@GROUP.method("chain_getBlockHash", "chain_getHead")
def get_block_hash(
    context: RpcContext, number: list[BigNumber] | BigNumber | None = None
) -> str | list[str | None] | None:
    if number is None:
        return hexed(context.chain.best.hash)
    if isinstance(number, list):
        return [_hash_of(context, it) for it in number]
    return _hash_of(context, number)


@GROUP.method("chain_getFinalizedHead", "chain_getFinalisedHead")
def get_finalized_head(context: RpcContext) -> str:
    return hexed(context.chain.finalized.hash)


@GROUP.subscription(
    "chain_subscribeNewHeads",
    "chain_subscribeNewHead",
    "subscribe_newHead",
    notification="chain_newHead",
    unsubscribe=("chain_unsubscribeNewHeads", "chain_unsubscribeNewHead", "unsubscribe_newHead"),
)
def subscribe_new_heads(context: RpcContext, subscription: Subscription) -> None:
    _follow(context.best_heads, subscription, header_json(context.chain.best.header))


@GROUP.subscription("chain_subscribeAllHeads", notification="chain_allHead", unsubscribe=("chain_unsubscribeAllHeads",))
def subscribe_all_heads(context: RpcContext, subscription: Subscription) -> None:
    _follow(context.imported_heads, subscription, header_json(context.chain.best.header))


@GROUP.subscription(
    "chain_subscribeFinalizedHeads",
    "chain_subscribeFinalisedHeads",
    notification="chain_finalizedHead",
    unsubscribe=("chain_unsubscribeFinalizedHeads", "chain_unsubscribeFinalisedHeads"),
)
def subscribe_finalized_heads(context: RpcContext, subscription: Subscription) -> None:
    _follow(context.finalized_heads, subscription, header_json(context.chain.finalized.header))


def _follow(feed: HeadFeed, subscription: Subscription, now: dict[str, object]) -> None:
    subscription.send(msgspec.json.encode(now))
    feed.join(subscription)


def _hash_of(context: RpcContext, number: int) -> str | None:
    if number > U32_MAX:
        raise RpcError(OTHER_CHAIN_ERROR, f"`{number}` > u32::MAX, the max block number is u32.")
    return hexed_or_null(context.chain.hash_of(number))
