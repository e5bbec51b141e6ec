"""JSON-RPC 2.0: one message in, one answer out; batches, notifications, limits.

Law: whatever comes in, what goes out is an answer of JSON-RPC or nothing at all. Requests without an id are
notifications of the client, which a node neither answers nor carries out.

Clients take turns, also between the requests of a batch and between the messages of one connection. Work for a client
that left is dropped; its changes stay.
"""

import logging
from inspect import iscoroutine
from typing import Any

import msgspec

from relaycast_node.chain.exceptions import ChainsHalted, TickFailed
from relaycast_node.journal.journal import NotNoted
from relaycast_node.rpc.method_table import MethodTable
from relaycast_node.rpc.parameters import arguments
from relaycast_node.rpc.rpc_error import (
    INTERNAL_ERROR,
    RATE_EXCEEDED,
    TOO_BIG_BATCH,
    TOO_BIG_BATCH_RESPONSE,
    TOO_BIG_REQUEST,
    TOO_BIG_RESPONSE,
    RpcError,
    admins_only,
    client_error,
    invalid_request,
    method_not_found,
    missing_node,
    over_limit,
    parse_error,
)
from relaycast_node.rpc.session import ClientLeft, RpcSession
from relaycast_trie.exceptions import MissingNode

log = logging.getLogger(__name__)

MOST_REQUEST_BYTES = MOST_RESPONSE_BYTES = 15 * 1024 * 1024
"""As a Substrate node has it by default."""

MOST_BATCH = 10_000
"""Requests in one batch."""

FOR_ADMINS = "dev_"
"""Prefix of methods that change all chains, or that only this node has."""

Id = str | int | None
_encoder = msgspec.json.Encoder()


class _Request(msgspec.Struct):
    method: str
    jsonrpc: str
    params: list[Any] | dict[str, Any] | None = None
    id: Id | msgspec.UnsetType = msgspec.UNSET


class _OnlyId(msgspec.Struct):
    id: Id = None


class _Result(msgspec.Struct, kw_only=True):
    jsonrpc: str = "2.0"
    id: Id
    result: Any


class _Error(msgspec.Struct, kw_only=True):
    jsonrpc: str = "2.0"
    id: Id
    error: dict[str, object]


_requests = msgspec.json.Decoder(_Request)
_ids = msgspec.json.Decoder(_OnlyId)
_batches = msgspec.json.Decoder(list[msgspec.Raw])


class JsonRpc:
    """Answers the messages of clients with the methods of ``table``; each gets ``context``."""

    def __init__(self, table: MethodTable, context: object) -> None:
        self.table = table
        self.context = context

    async def receive(self, message: bytes | str, session: RpcSession) -> None:
        """Answer a message into the session's outbox; waits while it is full, and lets other clients run."""
        await session.outbox.room()
        answer = await self.answer(message, session)
        if answer is not None:
            session.outbox.put(answer)
        session.start()
        await session.pause()

    async def answer(self, message: bytes | str, session: RpcSession) -> bytes | None:
        """Return the answer to a message in JSON, ``None`` if there is none or its client has left."""
        if len(message) > MOST_REQUEST_BYTES:
            return too_big_request()
        data = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
        try:
            if data.lstrip(b" \t\r\n")[:1] == b"[":
                return await self._answer_batch(data, session)
            return await self._answer_one(data, session)
        except ClientLeft:
            return None

    async def _answer_batch(self, data: bytes, session: RpcSession) -> bytes | None:
        try:
            requests = _batches.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            return _refused(None, parse_error(str(error)))
        if not requests:
            return _refused(None, invalid_request("an empty batch"))
        if len(requests) > MOST_BATCH:
            return _refused(None, over_limit(TOO_BIG_BATCH, "The batch request was too large", MOST_BATCH))
        too_fast = session.admit(len(requests) - 1)
        if too_fast is not None:
            return rate_exceeded(None, str(too_fast))
        answers: list[bytes] = []
        room = MOST_RESPONSE_BYTES
        for request in requests:
            answer = await self._answer_one(bytes(request), session)
            if answer is not None:
                answers.append(answer)
                room -= len(answer) + 1
                if room < 0:
                    message = "The batch response was too large"
                    return _refused(None, over_limit(TOO_BIG_BATCH_RESPONSE, message, MOST_RESPONSE_BYTES))
            await session.rest()
        return b"[" + b",".join(answers) + b"]" if answers else None

    async def _answer_one(self, data: bytes, session: RpcSession) -> bytes | None:
        try:
            request = _requests.decode(data)
        except msgspec.ValidationError as error:
            return _refused(_id_of(data), invalid_request(str(error)))
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            return _refused(None, parse_error(str(error)))
        number = request.id
        if isinstance(number, msgspec.UnsetType):
            return None
        try:
            if request.jsonrpc != "2.0":
                raise invalid_request('jsonrpc is not "2.0"')
            result = self._call(request, session)
            return _encoded(number, await result if iscoroutine(result) else result)
        except ClientLeft:
            raise
        except RpcError as error:
            return _refused(number, error)
        except Exception as error:
            return _refused(number, _failure(request.method, error))

    def _call(self, request: _Request, session: RpcSession) -> object:
        method = self.table.find(request.method)
        if method is None:
            raise method_not_found(request.method, self.table.names if session.takes_hint() else ())
        if session.denied is not None and request.method.startswith(FOR_ADMINS):
            raise admins_only(request.method, session.denied)
        if method.unsubscribes:
            given = request.params
            first = next(iter(given.values() if isinstance(given, dict) else given or ()), None)
            return session.end(first, method.notification)
        found = arguments(method.expected, request.params)
        if method.takes_session:
            return method.call(self.context, session, *found)
        if not method.notification:
            return method.call(self.context, *found)
        subscription = session.open(method.notification)
        try:
            method.call(self.context, subscription, *found)
        except BaseException:
            session.end(subscription.id, method.notification)
            raise
        return subscription.id


def too_big_request() -> bytes:
    """Return the answer to a message that is too long to be looked at."""
    return _refused(None, over_limit(TOO_BIG_REQUEST, "Request is too big", MOST_REQUEST_BYTES))


def rate_exceeded(message: bytes | str | None, reason: str) -> bytes:
    """Return the answer to a message that came too soon; ``None`` is one that was not read."""
    number = None if message is None else _id_of(message)
    return _refused(number, RpcError(RATE_EXCEEDED, "RPC rate limit exceeded", reason))


def _failure(method: str, error: Exception) -> RpcError:
    """Return what a client is told of a method that failed: why only where the reason is not in the code."""
    if isinstance(error, NotNoted):
        return RpcError(INTERNAL_ERROR, "Internal error", str(error))
    if isinstance(error, MissingNode):
        return missing_node(error)
    if isinstance(error, TickFailed | ChainsHalted):
        return client_error(str(error))
    log.error("%s failed", method, exc_info=error)
    return RpcError(INTERNAL_ERROR, "Internal error")


def _encoded(number: Id, result: object) -> bytes:
    answer = _encoder.encode(_Result(id=number, result=result))
    if len(answer) > MOST_RESPONSE_BYTES:
        raise over_limit(TOO_BIG_RESPONSE, "Response is too big", MOST_RESPONSE_BYTES)
    return answer


def _refused(number: Id, error: RpcError) -> bytes:
    return _encoder.encode(_Error(id=number, error=error.to_json()))


def _id_of(data: bytes | str) -> Id:
    """Return the id of a request that is none, where it has one."""
    try:
        return _ids.decode(data).id
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
