"""A process that publishes to a log and delivers from it over HTTP, until it is killed or everything is delivered.

It writes a line for each acknowledged append, first ``seq`` and length, and ``done`` at the end.
"""

import asyncio
import sys
from pathlib import Path
from random import Random
from threading import Thread

from relaycast_gateway.clock import SystemClock
from relaycast_gateway.delivery.circuit import CircuitLimits
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.order import DeliveryOrder, RetryPolicy
from relaycast_gateway.delivery.sender import Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

WINDOWS = {"slow": 4, "failing": 1, "failing-wide": 8}
"""The subscriptions, by the name of their sink."""


def order(name: str, port: int) -> DeliveryOrder:
    return DeliveryOrder(
        name,
        Target("HTTP", f"http://127.0.0.1:{port}/{name}", {}),
        lambda _: True,
        lambda it: WireMessage(f"{it.seq} {it.data.content}".encode()),
        RetryPolicy(attempts=1_000_000, first_seconds=0.002, longest_seconds=0.02),
        WINDOWS[name],
    )


def publish(log: EventLog, count: int, draw: Random) -> None:
    while log.last_seq < count:
        length = min(draw.randrange(1, 60), count - log.last_seq)
        drafts = [EventDraft("data.published", nat(draw.getrandbits(40)), b"", n) for n in range(length)]
        records = log.append(*drafts)
        print(records[0].seq, len(records), flush=True)


async def deliver(log: EventLog, store: DeliveryStore, count: int, port: int, seed: str) -> None:
    guard, clock = SinkGuard(["127.0.0.1"]), SystemClock()
    limits = DeliveryLimits(circuit=CircuitLimits(failures=30, first_seconds=0.02, longest_seconds=0.1))
    deliveries = EventDeliveries(log, store, sender_of=lambda target: HttpSender(target, guard, clock), limits=limits)
    for name in WINDOWS:
        deliveries.add(order(name, port), 0)
    await deliveries.start()
    print("open", flush=True)
    Thread(target=publish, args=(log, count, Random(seed)), daemon=True).start()
    while any(state.cursor < count or state.pending for state in deliveries.states()):
        await asyncio.sleep(0.01)
    await deliveries.stop()
    print("done", flush=True)


def main() -> None:
    folder, seed, count, port = sys.argv[1:]
    with EventLog.open(Path(folder) / "events.sqlite") as log:
        store = DeliveryStore.open(Path(folder) / "delivery.sqlite")
        asyncio.run(deliver(log, store, int(count), int(port), seed))
        store.close()


if __name__ == "__main__":
    main()
