"""``chainHead_v1_*``: a client follows a chain and reads the reported blocks (JSON-RPC interface spec)."""

from collections.abc import Callable

from relaycast_node.rpc.chain_follow import ChainFollow
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import AnyJson, BlockHash, Bool, HexBytes
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_node.rpc.session import RpcSession
from relaycast_node.rpc.storage_queries import queries_of

GROUP = MethodGroup()

FOLLOW_EVENT = "chainHead_v1_followEvent"
MOST_FOLLOWS = 4
"""Follow subscriptions that one connection may have at a time: as many as a Substrate node allows."""

TOO_MANY_FOLLOWS, INVALID_BLOCK, INVALID_CALL, INVALID_CONTINUE, DUPLICATE_HASHES = range(-32800, -32805, -1)

LIMIT_REACHED: dict[str, object] = {"result": "limitReached"}

Begun = tuple[str, Callable[[], None]]


@GROUP.session_method("chainHead_v1_follow")
def follow(context: RpcContext, session: RpcSession, with_runtime: Bool = False) -> str:
    """Report finalized blocks, new blocks and the best block, until the client ends it."""
    if sum(isinstance(it, ChainFollow) for it in session.kept.values()) >= MOST_FOLLOWS:
        raise RpcError(TOO_MANY_FOLLOWS, f"at most {MOST_FOLLOWS} follow subscriptions a connection")
    subscription = session.open(FOLLOW_EVENT)
    subscription.on_close(lambda: session.drop(subscription.id))
    session.kept[subscription.id] = ChainFollow(context, subscription, with_runtime=with_runtime)
    return subscription.id


@GROUP.session_method("chainHead_v1_unfollow")
def unfollow(_context: RpcContext, session: RpcSession, follow_subscription: str) -> None:
    session.end(follow_subscription, FOLLOW_EVENT)


@GROUP.session_method("chainHead_v1_header")
def header(context: RpcContext, session: RpcSession, follow_subscription: str, at: BlockHash) -> str | None:
    """Return a pinned block's header in SCALE."""
    if _pinning(session, follow_subscription, at) is None:
        return None
    return hexed(context.block(at).header.encode())


@GROUP.session_method("chainHead_v1_body")
def body(_context: RpcContext, session: RpcSession, follow_subscription: str, at: BlockHash) -> dict[str, object]:
    """Start an operation that sends a pinned block's extrinsics."""
    found = _pinning(session, follow_subscription, at)
    return _started(session, found, lambda it: it.begin_body(at))


@GROUP.session_method("chainHead_v1_call")
def call(
    _context: RpcContext,
    session: RpcSession,
    follow_subscription: str,
    at: BlockHash,
    function: str,
    call_parameters: HexBytes,
) -> dict[str, object]:
    """Start an operation that sends the result of a runtime call at a pinned block."""
    found = _pinning(session, follow_subscription, at)
    if found is not None and not found.with_runtime:
        raise RpcError(INVALID_CALL, "calls need a follow subscription with the runtime: chainHead_v1_follow [true]")
    return _started(session, found, lambda it: it.begin_call(at, function, call_parameters))


@GROUP.session_method("chainHead_v1_storage")
def storage(
    _context: RpcContext,
    session: RpcSession,
    follow_subscription: str,
    at: BlockHash,
    items: list[AnyJson],
    child_trie: HexBytes | None = None,
) -> dict[str, object]:
    """Start an operation that sends storage items of a pinned block; ``child_trie`` is the name without its prefix."""
    queries = queries_of(items)
    found = _pinning(session, follow_subscription, at)
    answer = _started(session, found, lambda it: it.begin_storage(at, queries, child_trie))
    return answer if answer is LIMIT_REACHED else {**answer, "discardedItems": 0}


@GROUP.session_method("chainHead_v1_continue")
def continue_(_context: RpcContext, session: RpcSession, follow_subscription: str, operation_id: str) -> None:
    """Go on with an operation that waits for that; one that has ended is no error."""
    found = _follow_of(session, follow_subscription)
    if found is None or not found.knows(operation_id):
        return
    go_on = found.resume(operation_id)
    if go_on is None:
        raise RpcError(INVALID_CONTINUE, f"the operation {operation_id} does not wait to be continued")
    session.later(go_on)


@GROUP.session_method("chainHead_v1_stopOperation")
def stop_operation(_context: RpcContext, session: RpcSession, follow_subscription: str, operation_id: str) -> None:
    """Cancel an operation; no error if it has ended."""
    found = _follow_of(session, follow_subscription)
    if found is not None:
        found.stop_operation(operation_id)


@GROUP.session_method("chainHead_v1_unpin")
def unpin(
    _context: RpcContext, session: RpcSession, follow_subscription: str, hash_or_hashes: list[BlockHash] | BlockHash
) -> None:
    """Unpin blocks, all or none of them."""
    hashes = hash_or_hashes if isinstance(hash_or_hashes, list) else [hash_or_hashes]
    found = _follow_of(session, follow_subscription)
    if found is None:
        return
    if len(set(hashes)) < len(hashes):
        raise RpcError(DUPLICATE_HASHES, "a block hash is given twice")
    for block_hash in hashes:
        _ensure_pinned(found, block_hash)
    found.unpin(hashes)


def _follow_of(session: RpcSession, subscription_id: str) -> ChainFollow | None:
    """Return what a client follows; another client's subscriptions are none, nor are those that were stopped."""
    found = session.kept.get(subscription_id)
    return found if isinstance(found, ChainFollow) and not found.is_stopped else None


def _pinning(session: RpcSession, subscription_id: str, block_hash: bytes) -> ChainFollow | None:
    """Return a follow subscription of this client; raises ``RpcError`` if the block is not pinned there."""
    found = _follow_of(session, subscription_id)
    if found is not None:
        _ensure_pinned(found, block_hash)
    return found


def _ensure_pinned(found: ChainFollow, block_hash: bytes) -> None:
    if not found.pinned(block_hash):
        raise RpcError(INVALID_BLOCK, f"the block {hexed(block_hash)} is not pinned")


def _started(
    session: RpcSession, found: ChainFollow | None, begin: Callable[[ChainFollow], Begun]
) -> dict[str, object]:
    if found is None or not found.has_room:
        return LIMIT_REACHED
    operation_id, run = begin(found)
    session.later(run)
    return {"result": "started", "operationId": operation_id}
