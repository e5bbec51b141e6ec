"""Close-outs: events that end an epoch of a namespace, and with it the order between its partitions.

A close-out has the header ``relaycast:epoch:closed`` and as data ``Map{epoch: Nat, last_ids: Array}``, where the item
of each partition is ``Nat`` or, where it had no event yet, ``Option(null)``. The next event of each partition names the
close-out as the one before it.

Law: all events of an epoch come before its close-out, all of the next one after it. Source: ICRC-72, "Event
Identifiers", which leaves the form of a close-out to implementations.
"""

from collections.abc import Sequence

from relaycast_gateway.icrc.names import EPOCH_CLOSED
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, map_of, nat
from relaycast_gateway.record import Headers


def close_out(epoch: int, last_ids: Sequence[int | None]) -> tuple[Icrc16, Headers]:
    """Return data and headers of the event that ends an epoch."""
    items = [NOTHING if each is None else nat(each) for each in last_ids]
    return map_of({"epoch": nat(epoch), "last_ids": array(*items)}), ((EPOCH_CLOSED, nat(epoch)),)


def last_ids_of(headers: Headers, data: Icrc16) -> list[int]:
    """Return the last event of each partition that an epoch ends with; none for an event that ends none."""
    if not any(name == EPOCH_CLOSED for name, _ in headers) or data.tag is not Tag.MAP:
        return []
    items = next((value for name, value in data.content if name == "last_ids"), NOTHING)
    return [each.content for each in items.content if each.tag is Tag.NAT] if items.tag is Tag.ARRAY else []
