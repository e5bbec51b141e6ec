"""Clients take turns: all are answered while one asks for much, and nobody works for a client that left."""

import asyncio
import json
from itertools import count
from typing import Any

import pytest

from node.chains import live_chains
from relaycast_node.rpc.json_rpc import JsonRpc
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import TURN_SECONDS, RpcSession
from small_chain import SmallChain, SmallLive


def request(method: str, *params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def hasty() -> RpcSession:
    """Return the session of a client whose turn is over after each look at the clock."""
    ticks = count()
    return RpcSession(clock=lambda: 2 * TURN_SECONDS * next(ticks))


async def reads_meanwhile(rpc: JsonRpc, greedy: "asyncio.Task[Any]") -> int:
    """Return how many small reads of another client are answered before a greedy client has its answer."""
    session, answered = RpcSession(), 0
    while not greedy.done():
        answered += await rpc.answer(json.dumps(request("system_chain")), session) is not None
        await asyncio.sleep(0)
    return answered


@pytest.mark.parametrize("method", ["system_chain", "no_such_method", "dev_newBlock"])
def test_others_are_answered_between_the_requests_of_a_batch(face: NodeFace, method: str) -> None:
    async def run() -> int:
        greedy = asyncio.create_task(face.relay.answer(json.dumps([request(method)] * 100), hasty()))
        return await reads_meanwhile(face.relay, greedy)

    assert asyncio.run(run()) >= 90


def test_others_are_answered_between_the_messages_of_one_connection(face: NodeFace) -> None:
    async def run() -> int:
        async def messages() -> None:
            session = hasty()
            for _ in range(100):
                await face.relay.receive(json.dumps(request("system_chain")), session)

        return await reads_meanwhile(face.relay, asyncio.create_task(messages()))

    assert asyncio.run(run()) >= 90


def test_a_turn_is_long_enough_for_many_small_requests(face: NodeFace) -> None:
    async def run() -> int:
        ticks = count()
        session = RpcSession(clock=lambda: next(ticks) * TURN_SECONDS / 50)
        greedy = asyncio.create_task(face.relay.answer(json.dumps([request("system_chain")] * 1_000), session))
        return await reads_meanwhile(face.relay, greedy)

    assert 10 <= asyncio.run(run()) <= 30


def test_others_are_answered_between_the_blocks_of_a_series(face: NodeFace, chain: SmallChain) -> None:
    async def run() -> int:
        greedy = asyncio.create_task(face.relay.answer(json.dumps(request("dev_newBlock", 100)), RpcSession()))
        return await reads_meanwhile(face.relay, greedy)

    assert asyncio.run(run()) >= 90
    assert chain.best.header.number == 102


@pytest.mark.parametrize(
    "asked", [request("dev_newBlock", 1_000), [request("dev_newBlock")] * 1_000], ids=["a series", "a batch"]
)
def test_what_a_client_that_left_asked_for_is_dropped_and_its_blocks_stay(
    face: NodeFace, chain: SmallChain, asked: object
) -> None:
    session = hasty()
    session.has_left = lambda: chain.best.header.number >= 12
    assert asyncio.run(face.relay.answer(json.dumps(asked), session)) is None
    assert 12 <= chain.best.header.number <= 13


def test_two_series_of_blocks_at_once_each_return_their_own_last_block() -> None:
    chain = SmallChain({b"key": b"value"})
    rpc = NodeFace(SmallLive(chain), version="1").relay

    async def series(blocks: int) -> str:
        answer = await rpc.answer(json.dumps(request("dev_newBlock", blocks)), RpcSession())
        return str(json.loads(answer or b"")["result"])

    async def run() -> list[str]:
        return list(await asyncio.gather(series(3), series(10)))

    found = asyncio.run(run())
    assert chain.best.header.number == 13
    numbers = [chain.known[bytes.fromhex(it[2:])].header.number for it in found]
    assert numbers[0] in {5, 6}
    assert numbers[1] == 13


def test_between_two_blocks_of_a_series_another_client_may_go_back_and_take_a_snapshot() -> None:
    live = live_chains()
    rpc = NodeFace(live, version="1").relay

    async def ask(method: str, *params: object) -> Any:
        return json.loads(await rpc.answer(json.dumps(request(method, *params)), RpcSession()) or b"")["result"]

    async def run() -> tuple[str, int]:
        await ask("dev_newBlock", 3)
        snapshot = await ask("dev_snapshot")
        series = asyncio.create_task(ask("dev_newBlock", 12))
        while live.relay.best.number < 6:
            await asyncio.sleep(0)
        await ask("dev_setHead", live.relay.best.number - 1)
        while live.relay.best.number < 8:
            await asyncio.sleep(0)
        before = live.relay.best.number
        assert await ask("dev_revert", snapshot) is True
        return await series, before

    last, before = asyncio.run(run())
    built_before = before + 1 - 3  # one block was left
    assert live.relay.best.number == 3 + 12 - built_before
    assert last == "0x" + live.relay.best.hash.hex()
