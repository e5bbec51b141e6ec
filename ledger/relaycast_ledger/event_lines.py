"""``events.jsonl``: what happened on every chain, one JSON object a line, in order.

The first line names the schema and the run. Bytes are ``0x`` hex, parachains are numbers.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import astuple

from relaycast_collator.facts import BlockBuilt, BlockPanicked, Fact, RelaySealed, WasmBlockRefused
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_pallets.balances import Burned, BurnedHeld, Deposit, Held, Minted, Released, Transfer
from relaycast_pallets.frame.system import Event

RELAY = "relay"

NAMES: Mapping[type[Event], tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        Transfer: ("Transferred", ("source", "destination", "amount")),
        Deposit: ("Deposited", ("account", "amount")),
        BurnedHeld: ("Slashed", ("reason", "account", "amount")),
        Held: ("Held", ("reason", "account", "amount")),
        Released: ("Released", ("reason", "account", "amount")),
        Minted: ("Minted", ("account", "amount")),
        Burned: ("Burned", ("account", "amount")),
    }
)
"""What this schema calls an event and its fields, where that is not what the pallet calls them."""


class EventLines:
    """A listener that writes every event of every block."""

    def __init__(self, stream: BinaryIO, run_id: str | None = None) -> None:
        """Without a ``run_id`` there is no first line: it is a part of a log."""
        self._stream = stream
        self._encoder = msgspec.json.Encoder()
        if run_id is not None:
            self._write({"schema": SCHEMA_VERSION, "run_id": run_id})

    def on_fact(self, fact: Fact) -> None:
        """Write what happened in a block."""
        match fact:
            case RelaySealed(tick, block):
                self._write_events(block.events, tick, RELAY)
            case BlockBuilt():
                self._write_events(fact.block.events, fact.tick, int(fact.para_id))
            case BlockPanicked():
                data = {"reason": fact.reason}
                self._write(_line(fact.tick, int(fact.para_id), "Collator", "BlockPanicked", data))
            case WasmBlockRefused():
                said = {"reason": fact.reason, "log": list(fact.log)}
                self._write(_line(fact.tick, int(fact.para_id), "Collator", "GuestRefusedBlock", said))
            case _:
                pass

    def _write_events(self, events: tuple[Event, ...], tick: int, chain: int | str) -> None:
        self._write(*lines(events, block=tick, chain=chain))

    def _write(self, *written: dict[str, Any]) -> None:
        self._stream.write(self._encoder.encode_lines(written))


def lines(events: tuple[Event, ...], *, block: int, chain: int | str) -> Iterator[dict[str, Any]]:
    """Yield a line for each event."""
    for event in events:
        own = event.__struct_fields__
        name, names = NAMES.get(type(event), (type(event).__name__, own))
        values = zip(names, astuple(event), strict=True)
        data = {called: f"0x{it.hex()}" if isinstance(it, bytes) else _plain(it) for called, it in values}
        yield _line(block, chain, event.pallet, name, data)


def _line(block: int, chain: int | str, pallet: str, event: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"block": block, "chain": chain, "pallet": pallet, "event": event, "data": data}


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    return str(value)
