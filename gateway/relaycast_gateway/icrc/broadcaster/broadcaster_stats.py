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

from itertools import islice
from typing import TYPE_CHECKING

from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc16 import Icrc16, Tag, array, map_of, nat
from relaycast_gateway.record import Headers

if TYPE_CHECKING:
    from relaycast_gateway.icrc.broadcaster.broadcaster import Broadcaster

BEGINNING = "icrc72:broadcaster:stats:"
MOST_LISTED = 1_000


def broadcaster_stats(of: "Broadcaster") -> Headers:
    """Return the statistics under their keys."""
    counts, outstanding = of.counts, of.outstanding()
    seconds = max(1.0, (of.wire.now_ns() - of.started_ns) / SECOND)
    found: dict[str, Icrc16] = {
        "events": nat(of.events + of.events_relayed_here),
        "notifications": nat(counts.notifications),
        "notifications:repeated": nat(counts.repeated),
        "notifications:dropped": nat(counts.dropped),
        "notifications:unconfirmed": nat(counts.given_up),
        "confirmations": nat(counts.confirmations),
        "relays:sent": nat(of.relays.relayed),
        "relays:received": nat(of.events_relayed_here),
        "rate:events": Icrc16(Tag.FLOAT, of.event_rate()),
        "rate:notifications": Icrc16(Tag.FLOAT, counts.notifications / seconds),
        "errors": nat(of.errors + counts.errors + of.relays.errors),
        "outstanding": nat(len(outstanding)),
        "outstanding:ids": array(*map(nat, islice(outstanding, MOST_LISTED))),
        "resources": map_of(of.resources()),
    }
    return tuple((BEGINNING + key, value) for key, value in found.items())
