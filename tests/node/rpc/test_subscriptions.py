"""Subscriptions: what is sent under which name, from when, until when."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.rpc import session as session_module
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import ClientOutbox, RpcSession
from relaycast_trie.scale import encode_bytes
from small_chain import SmallChain

Ask = Callable[..., Any]
Told = Callable[[], list[Any]]


@pytest.mark.parametrize(
    ("method", "notification", "unsubscribe"),
    [
        ("chain_subscribeNewHeads", "chain_newHead", "chain_unsubscribeNewHeads"),
        ("chain_subscribeNewHead", "chain_newHead", "chain_unsubscribeNewHead"),
        ("subscribe_newHead", "chain_newHead", "unsubscribe_newHead"),
        ("chain_subscribeAllHeads", "chain_allHead", "chain_unsubscribeAllHeads"),
    ],
)
def test_heads_come_from_the_best_on(
    ask: Ask, told: Told, chain: SmallChain, method: str, notification: str, unsubscribe: str
) -> None:
    subscription = ask(method)
    assert isinstance(subscription, str)
    chain.add()
    chain.add()
    found = told()
    assert [(name, number) for name, number, _ in found] == [(notification, subscription)] * 3
    assert [header["number"] for _, _, header in found] == ["0x2", "0x3", "0x4"]
    assert ask(unsubscribe, subscription) is True
    assert ask(unsubscribe, subscription) is False
    chain.add()
    assert told() == []
    assert chain.new_heads.callbacks == []


def test_finalized_heads_come_behind(ask: Ask, told: Told, chain: SmallChain) -> None:
    ask("chain_subscribeFinalisedHeads")
    chain.add()
    assert [(name, header["number"]) for name, _, header in told()] == [
        ("chain_finalizedHead", "0x0"),
        ("chain_finalizedHead", "0x1"),
    ]


def test_storage_comes_once_and_then_as_it_changes(ask: Ask, told: Told, chain: SmallChain) -> None:
    subscription = ask("state_subscribeStorage", ["0x6131", "0x7a"])
    chain.add({b"other": b"1"})
    block = chain.add({b"z": b"new", b"other": b"2"})
    block_hash, before = "0x" + block.hash.hex(), "0x" + chain.blocks[2].hash.hex()
    assert told() == [
        ("state_storage", subscription, {"block": before, "changes": [["0x6131", "0x4f4e45"], ["0x7a", None]]}),
        ("state_storage", subscription, {"block": block_hash, "changes": [["0x7a", "0x6e6577"]]}),
    ]
    assert ask("state_unsubscribeStorage", subscription) is True


def test_storage_without_keys_is_all_that_changes(ask: Ask, told: Told, chain: SmallChain) -> None:
    ask("state_subscribeStorage")
    assert told() == []
    chain.add({b"b": b"1", b"a2": None})
    ((_, _, result),) = told()
    assert result["changes"] == [["0x62", "0x31"], ["0x6132", None]]


def test_the_runtime_version_comes_once(ask: Ask, told: Told, chain: SmallChain) -> None:
    subscription = ask("state_subscribeRuntimeVersion")
    chain.add()
    ((name, number, version),) = told()
    assert (name, number, version["specVersion"]) == ("state_runtimeVersion", subscription, 7)
    assert ask("state_unsubscribeRuntimeVersion", subscription) is True


def test_an_extrinsic_is_followed_to_the_end(ask: Ask, told: Told, chain: SmallChain) -> None:
    data = encode_bytes(b"\x04\x00\x01\x08hi")
    subscription = ask("author_submitAndWatchExtrinsic", "0x" + data.hex())
    block = chain.add()
    chain.add()
    chain.add()
    block_hash = "0x" + block.hash.hex()
    assert told() == [
        ("author_extrinsicUpdate", subscription, "ready"),
        ("author_extrinsicUpdate", subscription, {"inBlock": block_hash}),
        ("author_extrinsicUpdate", subscription, {"finalized": block_hash}),
    ]
    assert extrinsic_hash(data) not in chain.pool.watchers._callbacks


def test_an_extrinsic_that_is_refused_is_not_followed(ask: Ask, session: RpcSession) -> None:
    assert ask("author_submitAndWatchExtrinsic", "0x1234")[0] == 1001
    assert session.subscriptions == {}


def test_an_end_is_for_the_right_kind_of_subscription(ask: Ask) -> None:
    subscription = ask("chain_subscribeNewHeads")
    assert ask("state_unsubscribeStorage", subscription) is False
    assert ask("chain_unsubscribeNewHeads", 5) is False
    assert ask("chain_unsubscribeNewHeads") is False
    assert ask("chain_unsubscribeNewHeads", subscription) is True


def test_subscriptions_have_a_limit(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MOST_SUBSCRIPTIONS", 2)
    first = ask("chain_subscribeNewHeads")
    ask("chain_subscribeNewHeads")
    assert ask("chain_subscribeNewHeads") == (
        -32006,
        "Too many subscriptions on the connection",
        "Exceeded max limit of 2",
    )
    ask("chain_unsubscribeNewHeads", first)
    assert isinstance(ask("chain_subscribeNewHeads"), str)


def test_without_a_connection_there_are_no_subscriptions(face: NodeFace) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "chain_subscribeNewHeads"})
    answer = asyncio.run(face.relay.answer(message, RpcSession(subscribes=False)))
    assert answer is not None
    assert json.loads(answer)["error"] == {
        "code": -32603,
        "message": "Internal error",
        "data": "subscriptions need a WebSocket connection",
    }


def test_a_client_hears_the_id_before_the_first_notification(face: NodeFace, chain: SmallChain) -> None:
    async def exchange() -> list[Any]:
        session = RpcSession()
        await face.relay.receive('{"jsonrpc":"2.0","id":1,"method":"chain_subscribeNewHeads"}', session)
        chain.add()
        session.outbox.close()
        found = []
        while (message := await session.outbox.get()) is not None:
            found.append(json.loads(message))
        return found

    answer, *heads = asyncio.run(exchange())
    assert [head["params"]["subscription"] for head in heads] == [answer["result"]] * 2


def test_a_client_that_falls_behind_is_cut_off(face: NodeFace, chain: SmallChain) -> None:
    async def fall_behind() -> RpcSession:
        session = RpcSession(outbox=ClientOutbox(messages=5))
        await face.relay.receive('{"jsonrpc":"2.0","id":1,"method":"chain_subscribeNewHeads"}', session)
        for _ in range(20):
            chain.add()
        return session

    session = asyncio.run(fall_behind())
    assert session.outbox.broken == "too slow: 5 messages of 1712 bytes wait, the limits are 5 and 16777216"
    assert len(session.outbox) == 0
    assert asyncio.run(session.outbox.get()) is None


def test_who_does_not_read_answers_is_not_read_from(face: NodeFace) -> None:
    async def ask_on() -> int:
        session, asked = RpcSession(outbox=ClientOutbox(messages=3)), 0
        try:
            while asked < 10:
                await asyncio.wait_for(
                    face.relay.receive('{"jsonrpc":"2.0","id":1,"method":"system_name"}', session), 0.05
                )
                asked += 1
        except TimeoutError:
            assert len(session.outbox) == 3
            await session.outbox.get()
            await face.relay.receive('{"jsonrpc":"2.0","id":1,"method":"system_name"}', session)
            assert len(session.outbox) == 3
        return asked

    assert asyncio.run(ask_on()) == 3


def test_a_client_that_leaves_leaves_nothing_behind(
    face: NodeFace, chain: SmallChain, session: RpcSession, ask: Ask
) -> None:
    for method in ("chain_subscribeNewHeads", "chain_subscribeFinalizedHeads", "state_subscribeStorage"):
        ask(method)
    assert len(chain.new_heads.callbacks) == 2
    session.close()
    assert chain.new_heads.callbacks == chain.finalized_heads.callbacks == []
