"""How fast a served network answers: ready time, memory, storage reads in batches and one by one, while blocks come.

Reads are those of ``state_getStorage``, and of ``chainHead_v1_storage``, whose values come as events.

::

    python benches/bench_node.py [--scenario oracle] [--block-time 500ms] [--reads 10000] [--seconds 10]

The server is a process of its own, the client is this one: both share the machine. Each figure is the best of three
rounds but the 99th percentile, which is taken over all single reads.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
import psutil

NUMBER = "0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"
"""The storage key of ``System.Number``."""

OPERATIONS = 16
"""Operations of ``chainHead_v1`` that a client may have under way."""

ROUNDS = 3
READY_BY = 60.0


@dataclass(frozen=True, slots=True)
class Started:
    """A server that is ready at ``url``."""

    process: "subprocess.Popen[str]"
    url: str
    seconds: float
    resident_bytes: int


def start(scenario: str, block_time: str) -> Started:
    began = time.perf_counter()
    command = [sys.executable, "-m", "relaycast", "serve", scenario, "--port", "0", "--block-time", block_time]
    command += ["--rate-limit", "1000000"]  # the server's own speed is asked for
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = ""
    for line in process.stdout:
        url = url or next(iter(re.findall(r"ws://\S+", line)), "")
        if line.startswith("ready"):
            return Started(process, url, time.perf_counter() - began, psutil.Process(process.pid).memory_info().rss)
    raise SystemExit(f"the server ended with {process.wait()}")


def request(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "state_getStorage", "params": [NUMBER]}


async def batched(socket: aiohttp.ClientWebSocketResponse, reads: int) -> float:
    """Return how many reads of one batch are answered in a second."""
    batch = msgspec.json.encode([request(number) for number in range(reads)])
    began = time.perf_counter()
    await socket.send_bytes(batch)
    answers = msgspec.json.decode((await socket.receive()).data)
    assert len(answers) == reads
    return reads / (time.perf_counter() - began)


async def one_by_one(socket: aiohttp.ClientWebSocketResponse, seconds: float) -> list[float]:
    """Return the milliseconds that each read took, one after the other."""
    taken, end = list[float](), time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await socket.send_bytes(msgspec.json.encode(request(len(taken))))
        await socket.receive()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


async def followed(socket: aiohttp.ClientWebSocketResponse, at_a_time: int, seconds: float) -> float:
    """Return how many storage queries of a pinned block end in a second, ``at_a_time`` in a batch."""
    await socket.send_json({"jsonrpc": "2.0", "id": 0, "method": "chainHead_v1_follow", "params": [False]})
    name = (await socket.receive_json())["result"]
    opening = (await socket.receive_json())["params"]["result"]
    query = [name, opening["finalizedBlockHashes"][-1], [{"key": NUMBER, "type": "value"}]]
    request = {"jsonrpc": "2.0", "id": 1, "method": "chainHead_v1_storage", "params": query}
    batch = msgspec.json.encode([request] * at_a_time)
    began, done = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        await socket.send_bytes(batch)
        goal = done + at_a_time
        while done < goal:
            done += b"operationStorageDone" in (await socket.receive()).data.encode()
    took = time.perf_counter() - began
    await socket.send_json({"jsonrpc": "2.0", "id": 2, "method": "chainHead_v1_unfollow", "params": [name]})
    while (await socket.receive_json()).get("id") != 2:
        pass
    return done / took


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads a second of each way, and the milliseconds that single reads of ``state_getStorage`` took, by round."""

    batched: float
    singles: list[list[float]]
    followed_batched: float
    followed_singles: float


async def measure(url: str, reads: int, seconds: float) -> Reads:
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
        return Reads(
            max([await batched(socket, reads) for _ in range(ROUNDS)]),
            [await one_by_one(socket, seconds / ROUNDS) for _ in range(ROUNDS)],
            max([await followed(socket, OPERATIONS, seconds / ROUNDS) for _ in range(ROUNDS)]),
            max([await followed(socket, 1, seconds / ROUNDS) for _ in range(ROUNDS)]),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenario", default="oracle")
    parser.add_argument("--block-time", default="500ms")
    parser.add_argument("--reads", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    tries = []
    for _ in range(ROUNDS):
        server = start(given.scenario, given.block_time)
        tries.append(server)
        if len(tries) < ROUNDS:
            server.process.terminate()
            server.process.wait(READY_BY)
    server = tries[-1]
    assert server.process.stdout is not None
    with closing(server.process.stdout):
        try:
            reads = asyncio.run(measure(server.url, given.reads, given.seconds))
            peak = psutil.Process(server.process.pid).memory_info().rss
        finally:
            server.process.terminate()
            server.process.wait(READY_BY)
    singles = sorted(it for taken in reads.singles for it in taken)
    print(f"ready in {min(it.seconds for it in tries):.2f} s with {server.resident_bytes / 1e6:.0f} MB")
    print(f"batched reads: {reads.batched:,.0f} a second; after them {peak / 1e6:.0f} MB")
    print(f"one by one: {max(1e3 * len(taken) / sum(taken) for taken in reads.singles):,.0f} a second")
    p50, p99 = singles[len(singles) // 2], singles[len(singles) * 99 // 100]
    print(f"chainHead_v1_storage: {reads.followed_batched:,.0f} a second in batches of {OPERATIONS}, ", end="")
    print(f"{reads.followed_singles:,.0f} one by one")
    print(f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, a block every {given.block_time}")


if __name__ == "__main__":
    main()
