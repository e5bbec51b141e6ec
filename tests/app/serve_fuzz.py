"""Messages to a served network, some right, most of them wrong, and what their answers must be."""

import asyncio
import json
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import aiohttp

from fresh_process import Weight, settled_weight
from relaycast.serve.access import Access
from relaycast.serve.network import living
from relaycast.serve.server import Server

CODES = {-32700, -32600, -32601, -32602, -32603, -32006, -32007, -32008, -32010, -32011, 1, 2, 3001, 4001, 4002, 4003}
POOL_CODES = set(range(1001, 1041))
FOLLOW_CODES = set(range(-32804, -32799))

CHILD = "0x" + (b"pubsub" + (2000).to_bytes(4, "little")).hex()
ID_DIGITS = 16

BLOCKS_ALLOWED = 40
"""Beyond these ``dev_newBlock`` is left out: the chains themselves grow with their blocks."""

WORDS = [
    "",
    "0x",
    "0x0",
    "0xzz",
    "null",
    "\x00",
    "é",
    "0x" + "ff" * 32,
    "0x" + "00" * 31,
    "manual",
    "price",
    "9" * 5_000,
]
MEMBERS = ["hash", "extrinsic", "count", "a", "key", "type", "returnType", "paginationStartKey", "childTrieKey"]
QUERIES = ["value", "hash", "closestDescendantMerkleValue", "descendantsValues", "descendantsHashes"]

AS_MEANT = {
    "chainHead_v1_follow": "b",
    "chainHead_v1_unfollow": "w",
    "chainHead_v1_header": "wh",
    "chainHead_v1_body": "wh",
    "chainHead_v1_call": "whfx",
    "chainHead_v1_storage": "whqc",
    "chainHead_v1_continue": "wo",
    "chainHead_v1_stopOperation": "wo",
    "chainHead_v1_unpin": "wh",
    "archive_v1_call": "hfx",
    "archive_v1_storage": "hqc",
    "archive_v1_storageDiff": "hqh",
    "archive_v1_stopStorage": "s",
    "transaction_v1_broadcast": "x",
    "transaction_v1_stop": "s",
    "transactionWatch_v1_submitAndWatch": "x",
    "transactionWatch_v1_unwatch": "s",
}
"""Parameters that fit: ids of a follow (w) or another subscription (s) or operation (o), block hash (h), function (f)
and bytes (x), queries (q) of the top or a child trie (c), true or false (b)."""


class Fuzzer:
    """Makes requests: some right, most of them wrong in one way or another."""

    def __init__(self, seed: int, names: list[str], known: list[str]) -> None:
        self.rng = random.Random(seed)
        self.names = names
        self.known = [*known, *WORDS]
        self.blocks = deque(known[:2], maxlen=4)
        self.subscriptions = deque([""], maxlen=4)
        self.follows = deque([""], maxlen=2)
        """What the present connection has been told of last."""

    def value(self, depth: int = 0) -> Any:  # noqa: PLR0911
        kind = self.rng.randrange(11 if depth < 3 else 8)
        match kind:
            case 0:
                return None
            case 1:
                return self.rng.choice([True, False])
            case 2:
                return self.rng.choice([0, 1, -1, 2**31, 2**32, 2**64, -(2**70), 10**40])
            case 3:
                return self.rng.choice([0.5, -1e300, 1e-300])
            case 4 | 5 | 6:
                return self.rng.choice(self.known)
            case 7:
                return "0x" + self.rng.randbytes(self.rng.choice([0, 1, 4, 32, 33, 100])).hex()
            case 8:
                return {self.rng.choice(MEMBERS): self.value(depth + 1)}
            case _:
                return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]

    def meant(self, kind: str) -> Any:
        """Return a parameter of a kind of ``AS_MEANT``, as it should be."""
        choice = self.rng.choice
        made: dict[str, Callable[[], Any]] = {
            "b": lambda: self.rng.random() < 0.8,
            "s": lambda: choice(self.subscriptions),
            "w": lambda: choice(self.follows),
            "h": lambda: choice(self.blocks),
            "f": lambda: choice(["Core_version", "Metadata_metadata_versions", "AccountNonceApi_account_nonce"]),
            "q": lambda: [self.query() for _ in range(self.rng.randrange(4))],
            "c": lambda: choice([None, CHILD]),
            "o": lambda: str(self.rng.randrange(20)),
            "x": lambda: "0x" + self.rng.randbytes(choice([0, 32])).hex(),
        }
        return made[kind]()

    def query(self) -> dict[str, Any]:
        kind, start = self.rng.choice(QUERIES), self.rng.choice([None, self.rng.choice(self.known)])
        key = self.rng.choice(["0x", *self.known[:10]])
        return {"key": key, "type": kind, "returnType": kind, "paginationStartKey": start}

    def learn(self, told: Any) -> None:
        """Remember ids that an answer has, and blocks that a notification has."""
        if not isinstance(told, dict):
            return
        result = told.get("result")
        if isinstance(result, str) and len(result) == ID_DIGITS:
            self.subscriptions.append(result)
        if told.get("method") == "chainHead_v1_followEvent":
            event = told["params"]["result"]
            if event["event"] == "initialized":
                self.follows.append(told["params"]["subscription"])
                self.blocks.extend(event["finalizedBlockHashes"][-1:])
            elif event["event"] == "newBlock":
                self.blocks.append(event["blockHash"])

    def forget(self) -> None:
        """Forget the ids: the connection is another."""
        for ids in (self.subscriptions, self.follows):
            ids.clear()
            ids.append("")

    def request(self) -> Any:
        name = self.rng.choice(self.names if self.rng.random() < 0.7 else list(AS_MEANT))
        if self.rng.random() < 0.1:
            place = self.rng.randrange(len(name))
            name = name[:place] + self.rng.choice("_xA\x00é") + name[place + 1 :]
        params: Any = [self.value() for _ in range(self.rng.randrange(5))]
        if name in AS_MEANT and self.rng.random() < 0.8:
            params = [self.meant(kind) if self.rng.random() < 0.95 else self.value() for kind in AS_MEANT[name]]
        elif self.rng.random() < 0.1:
            params = self.rng.choice([{"at": self.value(), "key": self.value()}, self.value()])
        request: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": self.rng.choice([1, "x", None]),
            "method": name,
            "params": params,
        }
        if self.rng.random() < 0.1:
            request[self.rng.choice(["jsonrpc", "id", "method", "params"])] = self.value()
        if self.rng.random() < 0.05:
            del request[self.rng.choice(list(request))]
        return request

    def message(self) -> bytes:
        content: Any = self.request()
        if self.rng.random() < 0.2:
            content = [
                self.request() if self.rng.random() < 0.9 else self.value() for _ in range(self.rng.randrange(6))
            ]
        data = json.dumps(content).encode("utf-8", "surrogatepass")
        match self.rng.randrange(30):
            case 0:
                return data[: self.rng.randrange(len(data) + 1)]
            case 1:
                place = self.rng.randrange(len(data) + 1)
                return data[:place] + self.rng.randbytes(3) + data[place:]
            case 2:
                return self.rng.choice([b"[" * 20_000, b'{"a":' * 20_000, b"[[]" * 5_000, b'"\\ud800"', b"1" * 10_000])
            case 3:
                return b'{"jsonrpc":"2.0","id":1,"method":"state_getStorage","params":["0x' + b"00" * 200_000 + b'"]}'
        return data


def check(answer: bytes) -> None:
    if not answer:
        return
    found = json.loads(answer)
    for one in found if isinstance(found, list) else [found]:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)
        if "error" in one:
            assert one["error"]["code"] in CODES | POOL_CODES | FOLLOW_CODES, one
            assert isinstance(one["error"]["message"], str)
            assert "Traceback" not in json.dumps(one)


async def fuzz(count: int, *, seed: int, weighings: int = 0) -> list[Weight]:
    """Send ``count`` messages by POST and over sockets; return what the process held at times between them."""
    network = living("oracle", "manual")
    server = Server(network.clock, title="fuzz", key_names=network.key_names, access=Access())
    network.clock.new_block(4)
    relay = network.clock.relay
    known = [
        "0x" + data.hex()
        for data in (relay.best.hash, relay.genesis_hash, *list(relay.state_at(relay.best.hash).keys())[:20])
    ]
    await server.start("127.0.0.1", 0)
    names = [name for name in server.node.table.names if name != "dev_setBlockTime"]
    fuzzer, weighed, lasting = Fuzzer(seed, names, known), [], aiohttp.ClientTimeout(total=120)
    try:
        async with aiohttp.ClientSession(timeout=lasting) as client:
            socket = await client.ws_connect(server.url("ws"), max_msg_size=0)
            for index in range(count):
                if weighings and (index + 1) % (count // weighings) == 0:
                    weighed.append(settled_weight())
                if relay.best.number > BLOCKS_ALLOWED and "dev_newBlock" in fuzzer.names:
                    fuzzer.names.remove("dev_newBlock")
                message = fuzzer.message()
                path = fuzzer.rng.choice(["", "", "/para/3000"])
                if index % 3:
                    headers = {"content-type": "application/json"}
                    async with client.post(server.url("http") + path, data=message, headers=headers) as response:
                        assert response.status == 200
                        check(await response.read())
                    continue
                await socket.send_str(message.decode("utf-8", "replace"))
                await socket.send_json({"jsonrpc": "2.0", "id": "end", "method": "system_name"})
                while (answer := json.loads(await socket.receive_str(timeout=120))) != END:
                    if "method" not in answer if isinstance(answer, dict) else True:
                        check(json.dumps(answer).encode())
                    fuzzer.learn(answer)
                if index % 200 == 0:
                    fuzzer.forget()
                    await socket.close()
                    socket = await client.ws_connect(server.url("ws"), max_msg_size=0)
            await socket.close()
            async with client.post(
                server.url("http"), json={"jsonrpc": "2.0", "id": 1, "method": "system_name"}
            ) as response:
                assert (await response.json())["result"] == "relaycast"
    finally:
        await server.stop()
    return weighed


END = {"jsonrpc": "2.0", "id": "end", "result": "relaycast"}


def weights(count: int, *, seed: int, weighings: int) -> list[Weight]:
    """Return what ``fuzz`` returns."""
    return asyncio.run(fuzz(count, seed=seed, weighings=weighings))
