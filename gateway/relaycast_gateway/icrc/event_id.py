"""Event ids that publishers hold as bytes: natural numbers, big-endian.

Source: ICRC-72, "Event Identifiers".
"""


def id_of_blob(blob: bytes) -> int:
    r"""Return the number that bytes stand for; leading zeros do not count.

    >>> id_of_blob(b"\x01\x00"), blob_of_id(256)
    (256, b'\x01\x00')
    """
    return int.from_bytes(blob, "big")


def blob_of_id(event_id: int) -> bytes:
    """Return the shortest bytes of a number, none for 0; ``ValueError`` for a negative one."""
    if event_id < 0:
        raise ValueError(f"event id: got {event_id}, expected a natural number")
    return event_id.to_bytes((event_id.bit_length() + 7) // 8, "big")
