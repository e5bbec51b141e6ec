"""Entries as frames of a file: how one is written, and how much of a file is whole.

Law: a frame says how many frames before it were safely on disk when it was written. A file has a torn end if it ends in
the middle of a frame, or behind frames that were never safe in something else. Such an end counts as never written. A
frame that was safe and does not read means that the file is damaged.

::

    mark 4 | bytes of the entry u32 | index u64 | milliseconds u64 | safe frames u64 | digest 16 | entry in MessagePack
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from relaycast_node.journal.entries import Entry
from relaycast_trie.exceptions import RelaycastError

MARK = b"rcj\x01"
"""The last byte is the number of this layout."""

HEAD = struct.Struct("<4sIQQQ")
DIGEST_BYTES = 16
FRAME_BYTES = HEAD.size + DIGEST_BYTES
"""Bytes of a frame beside its entry."""

MOST_ENTRY_BYTES = 64 * 1024 * 1024

_entries = msgspec.msgpack.Decoder(Entry)


class JournalDamaged(RelaycastError, message="byte {at:,}: {reason}"):
    """A file of which a part that was safe on disk does not read, from byte ``at`` on, for ``reason``."""

    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Frame:
    """An entry in its place: ``index`` counts from 0, ``end`` is the byte behind it in its file."""

    index: int
    milliseconds: int
    safe: int
    entry: Entry
    end: int


def encode_frame(entry: Entry, *, index: int, milliseconds: int, safe: int) -> bytes:
    """Return the bytes of a frame; ``ValueError`` for an entry of more than 64 MiB."""
    body = msgspec.msgpack.encode(entry)
    if len(body) > MOST_ENTRY_BYTES:
        raise ValueError(f"an entry has at most {MOST_ENTRY_BYTES:,} bytes, got {len(body):,}")
    head = HEAD.pack(MARK, len(body), index, milliseconds, safe)
    return head + _digest(head, body) + body


def whole_frames(data: bytes, *, first: int = 0) -> Iterator[Frame]:
    """Yield the frames of a file up to its end, or to its torn end; raises ``JournalDamaged``.

    ``data`` may skip the first frames of the file; ``first`` is the index of its first frame.
    """
    at, index = 0, first
    while (frame := _frame_at(data, at)) is not None and frame.index == index:
        yield frame
        at, index = frame.end, index + 1
    _ensure_torn(data, at, index)


def _ensure_torn(data: bytes, at: int, index: int) -> None:
    """Raise ``JournalDamaged`` where a later frame says that the frame which should stand here was safe."""
    place = data.find(MARK, at)
    while place >= 0:
        later = _frame_at(data, place)
        if later is not None and later.safe > index:
            raise JournalDamaged(at, "an entry that does not read, before others that do")
        place = data.find(MARK, place + 1)


def _frame_at(data: bytes, at: int) -> Frame | None:
    """Return the frame that stands at a byte, ``None`` where none is whole."""
    start = at + FRAME_BYTES
    if len(data) < start:
        return None
    mark, size, index, milliseconds, safe = HEAD.unpack_from(data, at)
    end = start + size
    if mark != MARK or len(data) < end:
        return None
    body = data[start:end]
    if data[at + HEAD.size : start] != _digest(data[at : at + HEAD.size], body):
        return None
    try:
        return Frame(index, milliseconds, safe, _entries.decode(body), end)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalDamaged(at, f"an entry that was written by another version: {error}") from None


def _digest(head: bytes, body: bytes) -> bytes:
    return blake2b(head + body, digest_size=DIGEST_BYTES).digest()
