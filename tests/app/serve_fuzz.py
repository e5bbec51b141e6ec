"""Messages to a served network, some right, most of them wrong, and what their answers must be."""

import asyncio
import json
import random
from typing import Any

import aiohttp

from fresh_process import Weight, settled_weight
from relaycast.serve.access import Access
from relaycast.serve.network import living
from relaycast.serve.server import Server

CODES = {-32700, -32600, -32601, -32602, -32603, -32006, -32007, -32008, -32010, -32011, 1, 2, 3001, 4001, 4002, 4003}
POOL_CODES = set(range(1001, 1041))

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


class Fuzzer:
    """Makes requests: some right, most of them wrong in one way or another."""

    def __init__(self, seed: int, names: list[str], known: list[str]) -> None:
        self.rng = random.Random(seed)
        self.names = names
        self.known = [*known, *WORDS]

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
                return {self.rng.choice(["hash", "extrinsic", "count", "a"]): self.value(depth + 1)}
            case _:
                return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]

    def request(self) -> Any:
        name = self.rng.choice(self.names)
        if self.rng.random() < 0.1:
            place = self.rng.randrange(len(name))
            name = name[:place] + self.rng.choice("_xA\x00é") + name[place + 1 :]
        params: Any = [self.value() for _ in range(self.rng.randrange(5))]
        if self.rng.random() < 0.1:
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
            assert one["error"]["code"] in CODES | POOL_CODES, one
            assert isinstance(one["error"]["message"], str)
            assert "Traceback" not in json.dumps(one)


async def fuzz(count: int, *, seed: int, weighings: int = 0) -> list[Weight]:
    """Send ``count`` messages by POST and over sockets; return what the process held at so many times between them."""
    network = living("oracle", "manual")
    server = Server(network.live, title="fuzz", key_names=network.key_names, access=Access())
    network.live.new_block(4)
    relay = network.live.relay
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
                if index % 200 == 0:
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
