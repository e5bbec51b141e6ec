"""Inputs that were dropped with a failed tick, as JSON lines in a file next to the journal.

Law: the file is for people. The program never reads it, and its size is bounded: beyond ``MOST_BYTES`` it replaces the
one old file. A long value is cut, and its length is added.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from relaycast_node.journal.entries import Entry

FILE, OLD_FILE = "dropped.jsonl", "dropped.old.jsonl"
FILE_MODE = 0o600
MOST_BYTES = 16 * 1024 * 1024
MOST_TICK_BYTES = MOST_BYTES // 2
MOST_LINES = 1_000
"""Inputs written for one tick: the newest ones, in at most ``MOST_TICK_BYTES``; the others are only counted."""

MOST_LINE_BYTES = MOST_BYTES // 8
"""An input that is longer is cut: its line has the beginning of its JSON as text."""

MOST_VALUE_BYTES = 16_384


def keep_aside(folder: Path, entries: Sequence[Entry], *, relay_block: int, reason: str) -> None:
    """Append a line for each input that was dropped since ``relay_block`` failed with them; raises ``OSError``."""
    data = b"".join(_lines(entries, relay_block, reason))
    file = folder / FILE
    with suppress(FileNotFoundError):
        if file.stat().st_size + len(data) > MOST_BYTES:
            file.rename(folder / OLD_FILE)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    with os.fdopen(handle, "ab") as opened:
        opened.write(data)
        opened.flush()
        os.fdatasync(opened.fileno())


def _lines(entries: Sequence[Entry], relay_block: int, reason: str) -> list[bytes]:
    common = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "relayBlock": relay_block, "reason": reason}
    lines, room = deque[bytes](), MOST_TICK_BYTES
    for entry in reversed(entries[-MOST_LINES:]):
        line = _line(common, entry)
        room -= len(line)
        if room < 0:
            break
        lines.appendleft(line)
    if len(lines) < len(entries):
        lines.appendleft(msgspec.json.encode({**common, "input": "more", "count": len(entries) - len(lines)}) + b"\n")
    return list(lines)


def _line(common: Mapping[str, object], entry: Entry) -> bytes:
    shown = {name: _shown(getattr(entry, name)) for name in entry.__struct_fields__}
    text = msgspec.json.encode(shown)
    if len(text) > MOST_LINE_BYTES:
        shown = {"cut": text[:MOST_LINE_BYTES].decode(errors="ignore"), "bytes": len(text)}
    return msgspec.json.encode({**common, "input": entry.__struct_config__.tag, **shown}) + b"\n"


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        cut = f"... ({len(value):,} bytes)" if len(value) > MOST_VALUE_BYTES else ""
        return f"0x{value[:MOST_VALUE_BYTES].hex()}{cut}"
    if isinstance(value, list | tuple):
        return [_shown(it) for it in value[:MOST_LINES]]
    return value
