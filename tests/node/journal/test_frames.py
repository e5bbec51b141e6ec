"""Frames of a journal: what a torn end is, and what is damage."""

import pytest

from relaycast_node.journal.entries import Entry, RemoveEntry, SnapshotEntry, TickEntry, TravelEntry
from relaycast_node.journal.frames import JournalDamaged, encode_frame, whole_frames

ENTRIES: list[Entry] = [TravelEntry(5), TickEntry(), RemoveEntry(None, [bytes(32)]), SnapshotEntry()]


def frames(*, safe: int) -> list[bytes]:
    """Return the entries as frames; the last ones say that ``safe`` of them are on disk."""
    return [
        encode_frame(entry, index=index, milliseconds=index, safe=min(index, safe))
        for index, entry in enumerate(ENTRIES)
    ]


def test_what_was_written_is_read() -> None:
    found = list(whole_frames(b"".join(frames(safe=2))))
    assert [it.entry for it in found] == ENTRIES
    assert [it.milliseconds for it in found] == [0, 1, 2, 3]


def test_a_file_that_ends_anywhere_holds_the_frames_before_that() -> None:
    made = frames(safe=2)
    data = b"".join(made)
    ends = [sum(map(len, made[:count])) for count in range(len(made) + 1)]
    for length in range(len(data) + 1):
        found = list(whole_frames(data[:length]))
        assert len(found) == max(count for count, end in enumerate(ends) if end <= length)


def test_a_frame_that_was_safe_and_does_not_read_is_damage() -> None:
    made = frames(safe=2)
    data = b"".join(made)
    starts = [sum(map(len, made[:index])) for index in range(len(made))]
    for at in range(starts[2]):
        broken = bytearray(data)
        broken[at] ^= 1
        with pytest.raises(JournalDamaged, match=r"an entry that does not read, before others that do") as raised:
            list(whole_frames(bytes(broken)))
        assert raised.value.at == max(start for start in starts if start <= at)


def test_a_frame_that_was_never_safe_and_does_not_read_is_a_torn_end() -> None:
    made = frames(safe=2)
    data = b"".join(made)
    for at in range(len(made[0]) + len(made[1]), len(data)):
        broken = bytearray(data)
        broken[at] ^= 1
        count = 2 if at < len(data) - len(made[3]) else 3
        assert [it.entry for it in whole_frames(bytes(broken))] == ENTRIES[:count]


def test_frames_that_change_places_do_not_read() -> None:
    first, second, third, fourth = frames(safe=0)
    assert len(list(whole_frames(second + first + third + fourth))) == 0
    assert len(list(whole_frames(first + third + fourth))) == 1
    with pytest.raises(JournalDamaged):
        list(whole_frames(b"".join([*frames(safe=2)[1:]])))
