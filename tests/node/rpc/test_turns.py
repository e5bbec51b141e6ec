"""Clients take turns: all are answered while one asks for much, and nobody works for a client that left."""

import asyncio
import json
from itertools import count
from typing import Any

import pytest

from node.chains import live_chains
from relaycast_collator.header import Header
from relaycast_node.rpc.json_rpc import JsonRpc
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import TURN_SECONDS, RpcSession
from small_chain import SmallBlock, SmallChain, SmallLive, SmallState


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


KEYS = [b"key" + number.to_bytes(2, "big") for number in range(5_000)]
NAMES = ["0x" + key.hex() for key in KEYS]
NOTHING = ["0x" + (b"nothing" + key).hex() for key in KEYS]
TRIE = b":child_storage:default:many"


class WideChain(SmallChain):
    """Many keys in both tries after each of 3,000 blocks."""

    def __init__(self) -> None:
        values = dict.fromkeys(KEYS, b"value")
        super().__init__(values, {b"many": values})
        for number in range(1, 3_001):
            block = SmallBlock(Header(self.best.hash, number, self.state.root))
            self.blocks.append(block)
            self.known[block.hash] = block

    def state_at(self, block_hash: bytes) -> SmallState:
        return self.states[self.genesis_hash] if block_hash in self.known else super().state_at(block_hash)


@pytest.fixture(scope="module")
def wide() -> SmallChain:
    return WideChain()


@pytest.mark.parametrize(
    ("method", "params", "least"),
    [
        ("state_getKeys", ["0x"], 19),
        ("state_getPairs", ["0x"], 19),
        ("state_getStorageSize", ["0x"], 19),
        ("state_queryStorageAt", [NOTHING], 19),
        ("state_queryStorage", [NOTHING[:300], 0], 2_999),
        ("state_getReadProof", [NAMES], 19),
        ("childstate_getKeys", ["0x" + TRIE.hex(), "0x"], 19),
        ("childstate_getKeysPaged", ["0x" + TRIE.hex(), "0x", 5_000], 19),
        ("childstate_getStorageEntries", ["0x" + TRIE.hex(), NOTHING], 19),
        ("state_getChildReadProof", ["0x" + TRIE.hex(), NAMES], 19),
        ("dev_dumpState", [], 19),
    ],
)
def test_others_are_answered_while_one_reads_much(
    wide: SmallChain, method: str, params: list[object], least: int
) -> None:
    rpc = NodeFace(SmallLive(wide), version="1").relay
    given = ["0x" + wide.blocks[0].hash.hex() if it == 0 else it for it in params]

    async def run() -> tuple[int, bytes | None]:
        greedy = asyncio.create_task(rpc.answer(json.dumps(request(method, *given)), hasty()))
        return await reads_meanwhile(rpc, greedy), await greedy

    answered, answer = asyncio.run(run())
    assert "result" in json.loads(answer or b"")
    assert answered >= least


@pytest.mark.parametrize(
    ("method", "items", "kind", "least"),
    [
        ("archive_v1_storage", [{"key": "0x", "type": "descendantsHashes"}], "storageDone", 70),
        ("archive_v1_storage", [{"key": it, "type": "value"} for it in NOTHING], "storageDone", 15),
        (
            "archive_v1_storage",
            [{"key": it, "type": "closestDescendantMerkleValue"} for it in NOTHING[:400]],
            "storageDone",
            40,
        ),
        ("archive_v1_storageDiff", [{"key": "0x", "returnType": "value"}], "storageDiffDone", 15),
    ],
)
def test_others_are_answered_while_one_is_sent_a_long_answer(
    wide: SmallChain, method: str, items: list[object], kind: str, least: int
) -> None:
    rpc = NodeFace(SmallLive(wide), version="1").relay

    async def run() -> int:
        session = RpcSession()
        await rpc.receive(json.dumps(request(method, "0x" + wide.best.hash.hex(), items)), session)

        async def read() -> None:
            while kind not in str(await session.outbox.get()):
                pass

        return await reads_meanwhile(rpc, asyncio.create_task(read()))

    assert asyncio.run(run()) >= least


def test_a_follower_gets_a_long_search_in_parts(wide: SmallChain) -> None:
    rpc = NodeFace(SmallLive(wide), version="1").relay
    best = "0x" + wide.best.hash.hex()
    items = [{"key": it, "type": "closestDescendantMerkleValue"} for it in NOTHING[:400]]

    async def run() -> list[str]:
        session, events = RpcSession(), list[str]()

        async def ask(method: str, *params: object) -> Any:
            await rpc.receive(json.dumps(request(f"chainHead_v1_{method}", *params)), session)
            answer = None
            while len(session.outbox):
                message = json.loads(await session.outbox.get() or b"")
                answer = message.get("result", answer)
                if "params" in message:
                    events.append(message["params"]["result"]["event"])
            return answer

        follow = await ask("follow", False)
        begun = await ask("storage", follow, best, items)
        while "operationStorageDone" not in events:
            await ask("continue", follow, begun["operationId"])
        return events

    assert asyncio.run(run()).count("operationWaitingForContinue") == 3


def test_a_walk_tells_of_one_state_whatever_is_built_or_taken_back_between_its_steps() -> None:
    live = live_chains()
    rpc = NodeFace(live, version="1").relay
    live.set_storage(None, dict.fromkeys(KEYS[::2], b"old"))
    live.new_block()
    live.set_storage(None, dict.fromkeys(KEYS[::4], b"new"))
    live.new_block()
    block = live.relay.best.hash
    expected = [["0x" + key.hex(), "0x" + value.hex()] for key, value in live.relay.state_at(block).pairs(b"key")]

    async def run() -> bytes | None:
        asked = request("state_getPairs", "0x" + b"key".hex(), "0x" + block.hex())
        walk = asyncio.create_task(rpc.answer(json.dumps(asked), hasty()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        live.set_storage(None, dict.fromkeys(KEYS, b"later"))
        live.new_block()
        await asyncio.sleep(0)
        live.set_head(live.relay, live.relay.hash_of(1) or b"")
        live.set_storage(None, dict.fromkeys(KEYS[::3]))
        live.new_block()
        assert not walk.done()
        return await walk

    assert json.loads(asyncio.run(run()) or b"")["result"] == expected


def test_lists_of_keys_and_ranges_of_blocks_have_a_bound(wide: SmallChain) -> None:
    rpc = NodeFace(SmallLive(wide), version="1").relay

    def refused(method: str, *params: object) -> str:
        error = json.loads(asyncio.run(rpc.answer(json.dumps(request(method, *params)), RpcSession())) or b"")["error"]
        assert error["code"] == -32602
        return str(error["data"])

    assert refused("state_queryStorageAt", ["0x00"] * 32_769) == (
        "keys: got a list of 32769 items, expected a list of at most 32,768 items"
    )
    assert refused("chain_getBlockHash", [1] * 32_769).startswith(
        "number: got a list of 32769 items, expected a list of at most 32,768 items or a number"
    )
    assert refused("state_queryStorage", NOTHING, "0x" + wide.blocks[0].hash.hex()) == (
        "keys: got 5,000 keys in 3,001 blocks, expected keys times blocks of at most 1,000,000"
    )


def test_the_nearest_name_is_looked_for_a_few_times_for_each_client(face: NodeFace) -> None:
    session = RpcSession()
    answer = asyncio.run(face.relay.answer(json.dumps([request("chain_getHeadr")] * 20), session))
    hints = [it["error"]["data"] for it in json.loads(answer or b"")]
    assert hints[:16] == ["'chain_getHeadr': did you mean chain_getHeader?"] * 16
    assert hints[16:] == ["'chain_getHeadr': rpc_methods lists the methods that are there"] * 4
