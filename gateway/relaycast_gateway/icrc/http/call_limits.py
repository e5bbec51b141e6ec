"""How large calls over HTTP may be: bytes of a body, values in it, calls that wait.

Law: a message is read within 100 ms and 10 MB, whatever it claims to hold. A value that takes no byte costs as much as
others, so that a few bytes cannot stand for a million values. Source: Candid specification, section "Security".
"""

from relaycast_gateway.icrc.interface import CandidMethod

MOST_BODY_BYTES = 2_097_152
"""Bytes of a call, and of its answer: the limit of the Internet Computer."""

VALUES_OF_A_BATCH = 40_000
"""Values in a batch of events: each costs 1, a record 1 more for each field. An event has some 20 and its data."""

VALUES_OF_A_CALL = 20_000
"""Values in any other call."""

VALUES_SKIPPED = 20_000
"""Values in fields that the method does not know."""

MOST_TYPES_BYTES = 16_384
"""Bytes of the types in front of an argument; those of our largest interface take a tenth of it."""

VALUES_OF_AN_ANSWER = 1_000_000
"""Values in the answer of a server that was asked: pages are long."""

MOST_CALLS_UNDER_WAY = 1_024
"""Calls over HTTP that a server answers at one time."""

ANSWER_SECONDS = 30.0
"""A call that takes longer is given up."""

_NOTIFICATIONS = frozenset({"icrc72_handle_notification", "icrc72_handle_notification_trusted"})
_BATCHES = _NOTIFICATIONS | {"icrc72_publish", "icrc72_publish_relay"}


def decode_argument(method: CandidMethod, body: bytes) -> object:
    """Return the argument in a call's body, ``None`` where the method has none; ``CandidError`` beyond the limits.

    An ``opt`` of another type is refused: read as null, a filter of another type would select everything.
    Notifications of other broadcasters may use newer types, so there it reads as null.
    """
    values = method.decode_arguments(
        body,
        values=values_of(method.name),
        skipped=VALUES_SKIPPED,
        head=MOST_TYPES_BYTES,
        is_strict=method.name not in _NOTIFICATIONS,
    )
    return values[0] if values else None


def values_of(method: str) -> int:
    """Return how many values the argument of a method may hold."""
    return VALUES_OF_A_BATCH if method in _BATCHES else VALUES_OF_A_CALL
