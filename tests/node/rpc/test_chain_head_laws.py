"""Laws of ``chainHead_v1``: whatever a client asks, and however its chain grows meanwhile, its events keep an order.

The model is the client's: it knows no more than what it was told, and refuses events that it cannot place.
"""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_node.rpc import chain_follow
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import RpcSession
from small_chain import SmallChain, SmallLive

READING = ("header", "body", "call", "storage", "storage")
METHODS = ("follow", "unfollow", *READING, *READING, "continue", "continue", "stopOperation", "unpin")
QUERY_TYPES = ("value", "hash", "closestDescendantMerkleValue", "descendantsValues", "descendantsHashes")
ERRORS = set(range(-32804, -32799))
LAST = {"operationBodyDone", "operationCallDone", "operationStorageDone", "operationInaccessible", "operationError"}


class Follower:
    """What one follow subscription was told so far; ``hear`` fails for an event out of order."""

    def __init__(self, *, with_runtime: bool) -> None:
        self.with_runtime = with_runtime
        self.reported: list[str] = []
        self.finalized = ""
        self.best = ""
        self.pinned: set[str] = set()
        self.operations: dict[str, bool] = {}
        """Those under way, and whether they wait to be continued."""

        self.is_over = False

    def hear(self, event: dict[str, Any]) -> None:
        assert not self.is_over, f"{event} after the end"
        name = event["event"]
        assert bool(self.finalized) != (name == "initialized"), "initialized is the first event, and only that"
        if name.startswith("operation"):
            self._hear_operation(name, event)
        elif name == "initialized":
            assert ("finalizedBlockRuntime" in event) == self.with_runtime
            self._report(event["finalizedBlockHashes"])
            self.finalized = self.reported[-1]
        elif name == "newBlock":
            assert ("newRuntime" in event) == self.with_runtime
            assert event["parentBlockHash"] == self.reported[-1], "a chain without forks"
            self._report([event["blockHash"]])
        elif name == "bestBlockChanged":
            assert event["bestBlockHash"] == self.reported[-1]
            self.best = event["bestBlockHash"]
        elif name == "finalized":
            place = self.reported.index(self.finalized) + 1
            assert event["finalizedBlockHashes"] == self.reported[place : place + 1]
            assert event["prunedBlockHashes"] == []
            self.finalized = self.reported[place]
        else:
            assert name == "stop"
            self.is_over = True

    def _report(self, hashes: list[str]) -> None:
        assert not set(hashes) & set(self.reported), "a block is reported once"
        self.reported += hashes
        self.pinned.update(hashes)

    def _hear_operation(self, name: str, event: dict[str, Any]) -> None:
        number = event["operationId"]
        assert number in self.operations, f"{event} of an operation that has ended, or never began"
        assert not self.operations[number], f"{event} while the operation waits to be continued"
        if name == "operationWaitingForContinue":
            self.operations[number] = True
        elif name in LAST:
            del self.operations[number]
        else:
            assert name == "operationStorageItems"
            assert event["items"]


class Client:
    """Sends requests of ``chainHead_v1`` and checks what comes back against what it knows."""

    def __init__(self, chain: SmallChain) -> None:
        self.chain = chain
        self.face = NodeFace(SmallLive(chain), version="1")
        self.session = RpcSession()
        self.followers: dict[str, Follower] = {}
        self.begun = ["another", "1"]
        """The storage operation begun last, behind its follow subscription."""

    async def ask(self, method: str, params: list[Any]) -> None:
        """Send a request and hear its answer, and the events behind it."""
        request = {"jsonrpc": "2.0", "id": 1, "method": f"chainHead_v1_{method}", "params": params}
        await self.face.relay.receive(json.dumps(request), self.session)
        answer, *rest = await self._messages()
        self._note(method, params, answer)
        self._hear(rest)

    async def hear(self) -> None:
        self._hear(await self._messages())

    async def _messages(self) -> list[Any]:
        found = []
        while len(self.session.outbox):
            message = await self.session.outbox.get()
            assert message is not None
            found.append(json.loads(message))
        return found

    def _hear(self, notifications: list[Any]) -> None:
        for it in notifications:
            assert it["method"] == "chainHead_v1_followEvent"
            self.followers[it["params"]["subscription"]].hear(it["params"]["result"])

    def _note(self, method: str, params: list[Any], answer: Any) -> None:
        if "error" in answer:
            assert answer["error"]["code"] in ERRORS
            return
        result = answer["result"]
        if method == "follow":
            self.followers[result] = Follower(with_runtime=params[0])
            return
        follower = self.followers.get(params[0])
        if follower is None or follower.is_over:
            assert result in (None, {"result": "limitReached"})
        elif method == "unfollow":
            follower.is_over = True
        elif method == "unpin":
            follower.pinned.remove(params[1])
        elif method == "stopOperation":
            follower.operations.pop(params[1], None)
        elif method == "continue":
            if params[1] in follower.operations:
                assert follower.operations[params[1]], "only what waits is continued"
                follower.operations[params[1]] = False
        else:
            assert params[1] in follower.pinned, "only pinned blocks are read"
            assert method != "call" or follower.with_runtime
            if method != "header" and result != {"result": "limitReached"}:
                assert result["operationId"] not in follower.operations
                follower.operations[result["operationId"]] = False
                if method == "storage":
                    self.begun = [params[0], result["operationId"]]


@st.composite
def requests(draw: st.DrawFn, client: Client) -> tuple[str, list[Any]]:
    """Draw a method with parameters that mostly fit together."""
    method = draw(st.sampled_from(METHODS))
    if method == "follow":
        return method, [draw(st.booleans())]
    name = draw(st.sampled_from(["another", *client.followers][-2:]))
    block = f"0x{draw(st.sampled_from(client.chain.blocks[-3:])).hash.hex()}"
    match method:
        case "unfollow":
            return method, [name]
        case "continue" | "stopOperation":
            return method, draw(st.sampled_from([client.begun, client.begun, [name, str(draw(st.integers(1, 9)))]]))
        case "call":
            return method, [name, block, draw(st.sampled_from(["Metadata_metadata_versions", "Not_there"])), "0x"]
        case "storage":
            kinds = draw(st.lists(st.sampled_from(QUERY_TYPES), max_size=3))
            return method, [name, block, [{"key": draw(st.sampled_from(["0x61", "0x"])), "type": it} for it in kinds]]
    return method, [name, block]


@given(data=st.data())
def test_events_keep_their_order_whatever_is_asked(data: st.DataObject) -> None:
    asyncio.run(exchange(data))


async def exchange(data: st.DataObject) -> None:
    chain = SmallChain({b"a1": b"one", b"a2": b"two", b"b": b"three"})
    chain.add()
    chain.add()
    client = Client(chain)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chain_follow, "MOST_PINNED", 6)
        patched.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
        await client.ask("follow", [True])
        for _ in range(data.draw(st.integers(20, 40), label="steps")):
            if data.draw(st.integers(0, 4), label="grows") == 0:
                chain.add({b"a1": bytes([len(chain.blocks)])})
                await client.hear()
            else:
                await client.ask(*data.draw(requests(client), label="request"))
    best = f"0x{chain.best.hash.hex()}"
    alive = {name: it for name, it in client.followers.items() if not it.is_over}
    assert all(it.best == best for it in alive.values())
    assert client.session.subscriptions.keys() == client.session.kept.keys() == alive.keys()
    client.session.close()
    assert chain.new_heads.callbacks == chain.finalized_heads.callbacks == []
