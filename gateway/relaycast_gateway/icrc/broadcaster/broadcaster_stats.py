"""The statistics that a broadcaster gives of itself.

The text names none; all keys begin with ``icrc72:broadcaster:stats:``. Counters are those of this run.

| key | is |
|---|---|
| ``events`` | events fanned out, relayed ones too |
| ``notifications`` | notifications handed over, each once |
| ``notifications:repeated``, ``notifications:dropped``, ``notifications:unconfirmed`` | sent again; not sent; given up |
| ``confirmations`` | confirmations taken |
| ``relays:sent``, ``relays:received`` | events relayed to and from other broadcasters |
| ``rate:events`` | events a second over the last minute |
| ``rate:notifications`` | notifications a second since the start |
| ``errors`` | refused events and calls, failed confirmations and writes of the store |
| ``outstanding``, ``outstanding:ids`` | notifications that wait for confirmation, and the first 1,000 ids |
| ``resources`` | ``events:waiting`` of audiences, ``relays:waiting``, ``replays:waiting``, ``memory:bytes``, ``log:behind`` |
"""  # noqa: E501 - rows of a table

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from relaycast_gateway.icrc.broadcaster.lane import LaneCounts
from relaycast_gateway.icrc16 import Icrc16, Tag, array, map_of, nat
from relaycast_gateway.record import Headers

BEGINNING = "icrc72:broadcaster:stats:"
MOST_LISTED = 1_000


class BroadcasterCounts(NamedTuple):
    """What a broadcaster has done in this run and what it holds."""

    lanes: LaneCounts
    events: int
    relays_sent: int
    relays_received: int
    errors: int
    """Beside those of the lanes."""

    events_a_second: float
    seconds: float
    """Since the start."""

    outstanding: int
    outstanding_ids: Iterable[int]
    resources: Mapping[str, Icrc16]


def broadcaster_stats(of: BroadcasterCounts) -> Headers:
    """Return the statistics under their keys."""
    lanes = of.lanes
    found: dict[str, Icrc16] = {
        "events": nat(of.events),
        "notifications": nat(lanes.notifications),
        "notifications:repeated": nat(lanes.repeated),
        "notifications:dropped": nat(lanes.dropped),
        "notifications:unconfirmed": nat(lanes.given_up),
        "confirmations": nat(lanes.confirmations),
        "relays:sent": nat(of.relays_sent),
        "relays:received": nat(of.relays_received),
        "rate:events": Icrc16(Tag.FLOAT, of.events_a_second),
        "rate:notifications": Icrc16(Tag.FLOAT, lanes.notifications / max(1.0, of.seconds)),
        "errors": nat(of.errors + lanes.errors),
        "outstanding": nat(of.outstanding),
        "outstanding:ids": array(*map(nat, islice(of.outstanding_ids, MOST_LISTED))),
        "resources": map_of(of.resources),
    }
    return tuple((BEGINNING + key, value) for key, value in found.items())
