"""A small chain behind the methods, and a client that speaks JSON to them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import RpcSession
from small_chain import SmallChain, SmallLive

CHILD = b"pubsub" + (2000).to_bytes(4, "little")

Ask = Callable[..., Any]


@pytest.fixture
def chain() -> SmallChain:
    """Return a chain with a genesis and two blocks, the second of which changes one of three keys."""
    values = {b"a1": b"one", b"a2": b"two" * 20, b"b": b"three"}
    made = SmallChain(values, {CHILD: {b"x" * 32: b"price", b"y" * 32: b"rate"}})
    made.add({})
    made.add({b"a1": b"ONE", b"b": None})
    return made


@pytest.fixture
def face(chain: SmallChain) -> NodeFace:
    return NodeFace(SmallLive(chain), version="1.2.3")


@pytest.fixture
def session() -> RpcSession:
    return RpcSession()


@pytest.fixture
def raw(face: NodeFace, session: RpcSession) -> Callable[[str | bytes], Any]:
    """Send a message as it is and return what came back, ``None`` where nothing did."""

    def send(message: str | bytes) -> Any:
        answer = asyncio.run(face.relay.answer(message, session))
        session.start()
        return None if answer is None else json.loads(answer)

    return send


@pytest.fixture
def ask(raw: Callable[[str | bytes], Any]) -> Ask:
    """Call a method and return its result; an error comes back as ``(code, message, data)``."""

    def call(method: str, *params: Any) -> Any:
        answer = raw(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == 1
        if "error" in answer:
            error = answer["error"]
            return error["code"], error["message"], error.get("data")
        return answer["result"]

    return call


@pytest.fixture
def told(session: RpcSession) -> Callable[[], list[Any]]:
    """Return the notifications since the last call: method, subscription, result."""

    def take() -> list[Any]:
        found = []
        while len(session.outbox):
            message = asyncio.run(session.outbox.get())
            assert message is not None
            told = json.loads(message)
            assert told["jsonrpc"] == "2.0"
            found.append((told["method"], told["params"]["subscription"], told["params"]["result"]))
        return found

    return take
