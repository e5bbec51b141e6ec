"""The gateway: what chains tell, in one append-only event log, pushed to any system and read back with its history."""

from relaycast_gateway.clock import Clock, SystemClock, VirtualClock
from relaycast_gateway.icrc16 import Icrc16, Tag, from_json, to_json
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility

__all__ = [
    "EVERYBODY",
    "Clock",
    "EventDraft",
    "EventRecord",
    "Icrc16",
    "SystemClock",
    "Tag",
    "VirtualClock",
    "Visibility",
    "from_json",
    "to_json",
]
