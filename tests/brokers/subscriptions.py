"""Subscriptions from the event log to a consumer: a process that prints a line for each event."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE
from relaycast_gateway.delivery.order import DeliveryState
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.record import EventDraft

SCRIPTS = Path(__file__).parent / "scripts"
TYPE = "io.relaycast.data.published"
COUNT = 5
EXPECTED = [f"{TYPE} key/{number} {number}" for number in range(COUNT)]


@contextmanager
def consumer(name: str, *arguments: str) -> Iterator[Iterator[str]]:
    """Run a consumer; yields its lines from the moment at which it is ready."""
    command = [sys.executable, str(SCRIPTS / f"consume_{name}.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            lines = (line.removesuffix("\n") for line in process.stdout)
            assert next(lines) == "ready"
            yield lines
        finally:
            process.kill()


def deliver(protocol: str, sink: str, **settings: Any) -> None:
    """Subscribe, append events, and wait until all are acknowledged."""

    async def delivered() -> DeliveryState:
        gateway = Gateway.open(allow_sink=["127.0.0.1"])
        await gateway.start()
        try:
            asked = {"protocol": protocol, "sink": sink, "protocolsettings": settings, "types": [TYPE]}
            made = await gateway.book.create(EVERYBODY_HERE, asked)
            drafts = [EventDraft(TYPE, nat(number), b"", 0, subject=f"key/{number}") for number in range(COUNT)]
            await asyncio.wrap_future(gateway.log.append_soon(drafts))
            while (state := gateway.deliveries.state(made.id)).delivered < COUNT and not state.dead:
                await asyncio.sleep(0.02)
            return state
        finally:
            await gateway.stop()

    state = asyncio.run(asyncio.wait_for(delivered(), 60))
    assert (state.delivered, state.dead, state.last_error) == (COUNT, 0, None)


def taken(lines: Iterator[str]) -> list[str]:
    return [next(lines) for _ in range(COUNT)]
