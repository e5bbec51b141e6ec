"""``events.jsonl``: what happened on every chain, one JSON object a line, in order.

The first line names the schema and the run. Bytes are ``0x`` hex, parachains are numbers.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, BinaryIO

import msgspec

from relaycast.outcome import SCHEMA_VERSION
from relaycast_collator import BlockRecord, Network
from relaycast_pallets.frame.system import Event

RELAY = "relay"


class EventLog:
    """Writes the events of each block of a network, relay chain first."""

    def __init__(self, stream: BinaryIO, run_id: str) -> None:
        self._stream = stream
        self._encoder = msgspec.json.Encoder()
        self._write({"schema": SCHEMA_VERSION, "run_id": run_id})

    def add(self, network: Network, records: list[BlockRecord]) -> None:
        """Write what happened in the last tick; ``records`` are its subscriber blocks."""
        for line in lines(network.relay_chain.head.events, block=network.tick, chain=RELAY):
            self._write(line)
        for record in records:
            if record.panic is not None:
                self._write(
                    _line(network.tick, int(record.para_id), "Collator", "BlockPanicked", {"reason": record.panic})
                )
                continue
            events = network.parachains[record.para_id].system.events
            for line in lines(tuple(events), block=network.tick, chain=int(record.para_id)):
                self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        self._stream.write(self._encoder.encode(line) + b"\n")


def lines(events: tuple[Event, ...], *, block: int, chain: int | str) -> Iterator[dict[str, Any]]:
    """Yield a line for each event."""
    for event in events:
        data = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
        yield _line(block, chain, event.pallet, type(event).__name__, data)


def _line(block: int, chain: int | str, pallet: str, event: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"block": block, "chain": chain, "pallet": pallet, "event": event, "data": data}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    return str(value)
