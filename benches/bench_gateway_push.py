"""How fast events are pushed over HTTP and acknowledged, with 32 connections to a receiver in another process.

::

    python benches/bench_gateway_push.py [--events 20000] [--folder DIR]

Log and delivery store are files below ``--folder``. Events are those of the chains, in binary mode; each is
acknowledged with a status of 204. Two shapes: 32 subscriptions with a window of 1, and one with a window of 32. A
figure is the best of three rounds.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

from relaycast_gateway.clock import SystemClock
from relaycast_gateway.cloudevents.encoding import encoder
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.order import DeliveryOrder
from relaycast_gateway.delivery.sender import Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.icrc16 import blob, boolean, map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

ROUNDS = 3
CONNECTIONS = 32
GOAL = 3_000
NAMESPACE = "io.relaycast.data.published"


class Sink(asyncio.Protocol):
    """Answers each request with 204 as soon as its body is there, and looks at nothing else."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held = b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self.held) < end + 4 + length:
                return
            self.held = self.held[end + 4 + length :]
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def receive() -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def draft(number: int) -> EventDraft:
    """Return an event as the chains tell it: a published value with its headers."""
    return EventDraft(
        namespace=NAMESPACE,
        data=map_of(
            {
                "publisher": nat(2_000),
                "key": blob(number.to_bytes(32, "big")),
                "value": blob(bytes(16)),
                "ttl": nat(10),
                "expiresAt": nat(number + 10),
                "blockNumber": nat(number),
                "blockHash": blob(bytes(32)),
                "stateRoot": blob(bytes(32)),
                "childRoot": blob(bytes(32)),
                "superseded": boolean(False),
            }
        ),
        source=bytes(29),
        occurred_ns=number,
        subject=f"price/{number}",
        headers=(
            ("ce:source", text("/oracle/relay")),
            ("ce:blocknumber", nat(number)),
            ("ce:blockhash", text("0x" + "00" * 32)),
            ("ce:publisher", nat(2_000)),
            ("ce:ttlstate", text("valid_for")),
        ),
    )


async def pushed(folder: Path, port: int, subscriptions: int, events: int) -> float:
    """Return acknowledged events a second."""
    guard, clock = SinkGuard(["127.0.0.1"]), SystemClock()
    each = events // subscriptions
    with EventLog.open(folder / "events.sqlite") as log:
        for number in range(0, each, 1_000):
            log.append_soon([draft(number + at) for at in range(min(1_000, each - number))])
        log.append(draft(each))
        store = DeliveryStore.open(folder / "delivery.sqlite")
        deliveries = EventDeliveries(log, store, sender_of=lambda it: HttpSender(it, guard, clock), clock=clock)
        for number in range(subscriptions):
            deliveries.add(
                DeliveryOrder(
                    f"s{number}",
                    Target("HTTP", f"http://127.0.0.1:{port}/", {"method": "POST"}),
                    lambda _: True,
                    encoder("HTTP", {}),
                    window=CONNECTIONS // subscriptions,
                ),
                0,
            )
        began = time.perf_counter()
        await deliveries.start()
        while any(state.delivered <= each for state in deliveries.states()):
            await asyncio.sleep(0.005)
        seconds = time.perf_counter() - began
        await deliveries.stop()
        store.close()
    return subscriptions * (each + 1) / seconds


def push(events: int, below: Path | None) -> Iterator[str]:
    """Deliver to a receiver in another process."""
    with Popen([sys.executable, __file__, "--receive"], stdout=PIPE) as receiver:
        assert receiver.stdout is not None
        port = int(receiver.stdout.readline())
        try:
            for subscriptions in (CONNECTIONS, 1):
                rates = []
                for _ in range(ROUNDS):
                    with tempfile.TemporaryDirectory(prefix="bench-push-", dir=below) as folder:
                        rates.append(asyncio.run(pushed(Path(folder), port, subscriptions, events)))
                window = CONNECTIONS // subscriptions
                yield (
                    f"push over HTTP, {subscriptions} subscriptions, window {window}: {max(rates):,.0f} acknowledged"
                    f" events/s, goal {GOAL:,}"
                )
        finally:
            receiver.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=None, help="where files are written")
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        asyncio.run(receive())
    for line in push(given.events, given.folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
