"""Ordinals: the place of each event in its namespace."""

import sqlite3
from pathlib import Path
from random import Random

import pytest

from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import EventLog, Retention, UnusableLog
from relaycast_gateway.record import EventDraft, EventRecord


def draft(namespace: str) -> EventDraft:
    return EventDraft(namespace, nat(1), b"", occurred_ns=0)


def expected(namespaces: list[str], history_start: int = 1) -> list[int]:
    return [namespaces[: at + 1].count(name) for at, name in enumerate(namespaces)][history_start - 1 :]


@pytest.mark.parametrize("in_file", [False, True])
def test_ordinals_count_the_events_of_each_namespace(tmp_path: Path, *, in_file: bool) -> None:
    random = Random(1)
    names = [random.choice("abc") for _ in range(500)]
    with EventLog.open(tmp_path / "log" if in_file else None) as log:
        for at in range(0, 500, 50):
            log.append(*map(draft, names[at : at + 50]))
        assert [log.ordinal(it) for it in log.read()] == expected(names)


def test_ordinals_stay_through_restarts_and_retention(tmp_path: Path) -> None:
    random = Random(2)
    names: list[str] = []
    firsts: list[EventRecord] = []
    for _ in range(6):
        with EventLog.open(tmp_path / "log", retention=Retention(count=40)) as log:
            more = [random.choice("abcd") for _ in range(30)]
            names += more
            log.append(*map(draft, more))
            kept = log.read()
            assert [log.ordinal(it) for it in kept] == expected(names, log.history_start)
            firsts.append(kept[0])
    with EventLog.open(tmp_path / "log") as log:
        assert [log.ordinal(it) for it in log.read()] == expected(names, log.history_start)
        assert log.history_start == 141
        assert log.ordinal(firsts[0]) is None


def test_a_namespace_whose_events_are_all_gone_counts_on(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log", retention=Retention(count=1)) as log:
        log.append(*[draft("a")] * 7)
        log.append(draft("b"))
    with EventLog.open(tmp_path / "log") as log:
        (record,) = log.append(draft("a"))
        assert log.ordinal(record) == 8


def to_schema_2(file: Path) -> None:
    """Write the log as the schema before had it: without numbers of events."""
    database = sqlite3.connect(file)
    database.execute("ALTER TABLE namespaces DROP COLUMN events")
    database.execute("PRAGMA user_version = 2")
    database.commit()
    database.close()


def test_a_log_of_the_schema_before_is_taken_up_in_place(tmp_path: Path) -> None:
    file = tmp_path / "log"
    names = ["a", "b", "a", "a", "b"]
    with EventLog.open(file) as log:
        records = log.append(*map(draft, names))
    to_schema_2(file)
    for _ in range(2):
        with EventLog.open(file) as log:
            assert log.read()[:5] == records
            assert [log.ordinal(it) for it in log.read()] == expected(names)
            (added,) = log.append(draft("b"))
            names.append("b")
            assert log.ordinal(added) == expected(names)[-1]


def test_a_purged_log_of_the_schema_before_counts_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with EventLog.open(file, retention=Retention(count=3)) as log:
        log.append(*map(draft, "aabab"))
    to_schema_2(file)
    with EventLog.open(file) as log:
        assert [(it.namespace, log.ordinal(it)) for it in log.read()] == [("b", 1), ("a", 1), ("b", 2)]


def test_a_count_below_the_events_is_damage(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log") as log:
        log.append(*map(draft, "aab"))
    database = sqlite3.connect(tmp_path / "log")
    database.execute("UPDATE namespaces SET events = 1 WHERE name = 'a'")
    database.commit()
    database.close()
    with pytest.raises(UnusableLog, match="fewer events counted in a namespace than there are"):
        EventLog.open(tmp_path / "log")
