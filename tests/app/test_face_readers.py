"""Readers on every face of one log: all get the same events, and a slow one loses what its face says."""

import pytest

from relaycast.experiments.ground import face_readers
from relaycast.experiments.ground.face_readers import (
    FACES,
    FAST,
    ICRC,
    PALLET,
    READERS,
    SLOW,
    WAMP,
    FaceRun,
    ReadingQueue,
)
from relaycast_gateway.clock import SECOND


def test_a_queue_takes_its_time_for_each_event_and_loses_what_it_has_not_handled() -> None:
    queue = ReadingQueue(10)
    assert [queue.take(name, 100) for name in "abc"] == [110, 120, 130]
    queue.drop_after(120)
    assert queue.done == {"a": 110, "b": 120}
    assert queue.take("d", 125) == 135


def test_every_face_brings_every_event_to_its_readers_and_the_same_run_gives_the_same_figures() -> None:
    figures = FaceRun(3, blocks=3, seed=1).figures()
    assert figures == FaceRun(3, blocks=3, seed=1).figures()
    assert figures.keys() == {(reader, face) for reader in READERS for face in FACES}
    for (reader, face), it in figures.items():
        assert (it.selected, it.delivered, it.lost, it.conflated) == (9, 9, 0, 0)
        expected = 6 * SECOND if face == PALLET else 3 * face_readers.SERVICE_NS[reader]
        assert it.max_ns == expected


def test_a_slow_reader_loses_what_its_face_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(face_readers.SERVICE_NS, SLOW, 3 * SECOND)  # two events in a block
    monkeypatch.setattr(face_readers, "KEPT_EVENTS", 40)
    monkeypatch.setattr(face_readers, "MOST_WAITING_BYTES", 9_000)
    figures = FaceRun(6, blocks=8, seed=1).figures()
    assert all(figures[FAST, face].lost == 0 for face in FACES)
    assert figures[SLOW, WAMP].lost > 0, "its session ended, and it goes on live"
    assert figures[SLOW, ICRC].lost == 0
    assert figures[SLOW, ICRC].conflated > 0, "what waits is overtaken"
    assert figures[SLOW, ICRC].p95_ns > 30 * SECOND  # type: ignore[operator]
