"""``transaction_v1_*`` and ``transactionWatch_v1_*``: transactions of the new interface (JSON-RPC interface spec)."""

from collections.abc import Callable

import msgspec

from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_node.extrinsic.watchers import StatusKind, TransactionStatus
from relaycast_node.rpc.author_methods import submitted
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import HexBytes
from relaycast_node.rpc.rpc_error import RpcError, invalid_params
from relaycast_node.rpc.session import RpcSession, Subscription
from relaycast_trie import CodecError

GROUP = MethodGroup()

MOST_BROADCASTS = 16
"""Transactions that one client may broadcast at a time: as many as a Substrate node allows."""


class Broadcast:
    """A transaction that is offered to the pool after each block until it is accepted or the client stops it."""

    def __init__(self, context: RpcContext, transaction: bytes) -> None:
        self._context = context
        self._transaction = transaction
        self._disconnect: Callable[[], None] | None = None
        if not self._is_taken():
            self._disconnect = context.follow_best(lambda _, __: self._try_again())

    def stop(self) -> None:
        """Stop offering it."""
        if self._disconnect is not None:
            self._disconnect()
            self._disconnect = None

    def _try_again(self) -> None:
        if self._is_taken():
            self.stop()

    def _is_taken(self) -> bool:
        """Offer it; an undecodable transaction counts as taken, because offering it again is useless."""
        try:
            self._context.chain.submit(self._transaction)
        except PoolError:
            return False
        except CodecError:
            pass
        return True


@GROUP.session_method("transaction_v1_broadcast")
def broadcast(context: RpcContext, session: RpcSession, transaction: HexBytes) -> str | None:
    """Offer a transaction to the pool until it is accepted; ``null`` if the client has too many under way."""
    count = sum(isinstance(it, Broadcast) for it in session.kept.values())
    if count >= MOST_BROADCASTS:
        return None
    made = Broadcast(context, transaction)
    return session.keep(made, made.stop)


@GROUP.session_method("transaction_v1_stop")
def stop(_context: RpcContext, session: RpcSession, operation_id: str) -> None:
    """End a broadcast."""
    found = session.kept.get(operation_id)
    if not isinstance(found, Broadcast):
        raise invalid_params("operationId", operation_id, "the id of a broadcast of this connection")
    found.stop()
    session.drop(operation_id)


@GROUP.subscription(
    "transactionWatch_v1_submitAndWatch",
    notification="transactionWatch_v1_watchEvent",
    unsubscribe=("transactionWatch_v1_unwatch",),
)
def submit_and_watch(context: RpcContext, subscription: Subscription, transaction: HexBytes) -> None:
    """Submit a transaction and tell what becomes of it, up to the first of ``LAST_EVENTS``."""

    def tell(event: dict[str, object]) -> None:
        subscription.send(msgspec.json.encode(event))
        if event["event"] in LAST_EVENTS:
            subscription.finish()

    def hear(status: TransactionStatus) -> None:
        event = _event_of(status)
        if event is not None:
            tell(event)

    subscription.on_close(context.chain.pool.watch(extrinsic_hash(transaction), hear))
    try:
        submitted(context, transaction)
    except RpcError as error:
        why = error.message if error.data is None else f"{error.message}: {error.data}"
        tell({"event": "invalid", "error": why})


LAST_EVENTS = frozenset({"finalized", "error", "invalid", "dropped"})

_ENDINGS = {
    StatusKind.FINALITY_TIMEOUT: ("dropped", "the node gave up waiting for finality"),
    StatusKind.USURPED: ("invalid", "another transaction took its place"),
    StatusKind.DROPPED: ("dropped", "the pool is full"),
    StatusKind.INVALID: ("invalid", "it is no longer valid"),
}


def _event_of(status: TransactionStatus) -> dict[str, object] | None:
    kind = status.kind
    if kind is StatusKind.READY:
        return {"event": "validated"}
    if kind is StatusKind.IN_BLOCK or kind is StatusKind.FINALIZED:
        name = "finalized" if kind is StatusKind.FINALIZED else "bestChainBlockIncluded"
        return {"event": name, "block": {"hash": hexed(status.hash or b""), "index": status.index}}
    if kind is StatusKind.RETRACTED:
        return {"event": "bestChainBlockIncluded", "block": None}
    if kind in _ENDINGS:
        name, why = _ENDINGS[kind]
        return {"event": name, "error": why}
    return None
