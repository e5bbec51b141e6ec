"""The event log: its order, its ids, and what it refuses."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.log import EventLog, LogClosed, Retention, UnusableLog
from relaycast_gateway.log.event_table import APPLICATION_ID
from relaycast_gateway.record import EVERYBODY, EventDraft, Visibility
from relaycast_ledger.exceptions import WorkFolderInUse


def draft(namespace: str = "a.b", number: int = 0, **more: object) -> EventDraft:
    return EventDraft(namespace, nat(number), b"\x01", 1_000 + number, **more)  # type: ignore[arg-type]


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "events.sqlite" if request.param == "file" else None


@pytest.fixture
def log(place: Path | None) -> Iterator[EventLog]:
    with EventLog.open(place, clock=VirtualClock(50)) as opened:
        yield opened


def test_events_are_numbered_from_1_and_chained_by_namespace(log: EventLog) -> None:
    records = log.append(draft("a", 0), draft("b", 1), draft("a", 2))
    records += log.append(draft("a", 3, is_ordered=False), draft("a", 4))
    assert [record.seq for record in records] == [1, 2, 3, 4, 5]
    assert [record.event_id for record in records] == [1, 2, 3, 4, 5]
    assert [record.prev_id for record in records] == [None, None, 1, None, 4]
    assert [record.received_ns for record in records] == [50] * 5
    assert log.read() == records
    assert (log.history_start, log.last_seq, log.last_id("b"), log.last_id("c")) == (1, 5, 2, None)


def test_ids_of_the_producer_are_kept_whatever_their_size(log: EventLog) -> None:
    large = (1 << 200) + 1
    (first,) = log.append(draft(event_id=large, prev_id=1 << 64))
    (second,) = log.append(draft())
    assert (first.event_id, first.prev_id, second.prev_id) == (large, 1 << 64, large)
    assert log.read() == [first, second]


def test_an_event_has_the_topic_that_it_was_given_or_its_namespace(place: Path | None) -> None:
    hidden = Visibility(eligible_authrole=("admin",))
    with EventLog.open(place) as log:
        given = [
            draft("a.b"),
            draft("a.b", topic="a.b.p2000"),
            draft("a.b", topic="a.b"),
            draft("c", visibility=hidden),
        ]
        records = log.append(*given)
    with EventLog.open(place) as log:
        if place is None:
            log.append(*given)
        else:
            assert log.read() == records
        assert [record.topic for record in log.read()] == ["a.b", "a.b.p2000", "a.b", "c"]
        assert [record.own_topic for record in records] == [None, "a.b.p2000", None, None]
        assert (list(log.topics), list(log.visibilities)) == (["a.b", "a.b.p2000", "c"], [EVERYBODY, hidden])
        first, rows = log.slice(0, 100)
        assert (first, rows.topic.tolist(), rows.visibility.tolist()) == (1, [0, 1, 0, 2], [0, 0, 0, 1])
        assert [record.seq for record in log.records([4, 9, 2, 0])] == [4, 2]


def test_an_empty_append_appends_nothing(log: EventLog) -> None:
    assert log.append() == []
    assert log.last_seq == 0


def test_publication_ids_differ_and_lead_back_to_their_events(log: EventLog) -> None:
    records = log.append(*(draft(number=number) for number in range(500)))
    ids = {record.pub_id for record in records}
    assert len(ids) == 500
    assert all(1 <= pub_id <= 1 << 53 for pub_id in ids)
    assert sum(pub_id > 1 << 52 for pub_id in ids) in range(150, 350)
    assert all(log.by_pub_id(record.pub_id) == record for record in records)
    assert [log.by_pub_id(pub_id) for pub_id in (0, -1, (1 << 53) + 1)] == [None] * 3


def test_visibility_subject_and_headers_come_back(log: EventLog) -> None:
    seen_by = Visibility(("alice",), (), ("bob",), ("guest",))
    headers = (("ce:source", text("/a")), ("ce:source", text("/b")))
    (record,) = log.append(draft(visibility=seen_by, headers=headers, subject="key"))
    assert log.get(1) == record
    assert (record.visibility, record.headers, record.subject) == (seen_by, headers, "key")
    assert (log.get(0), log.get(2)) == (None, None)


def test_many_threads_append_and_each_gets_its_own_records(log: EventLog) -> None:
    answers: dict[int, list[int]] = {}

    def work(number: int) -> None:
        for _ in range(20):
            records = log.append(draft(f"n{number}", number), draft(f"n{number}", number))
            assert [record.data for record in records] == [nat(number)] * 2
            assert records[1].seq == records[0].seq + 1
            answers.setdefault(number, []).extend(record.seq for record in records)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seq for seqs in answers.values() for seq in seqs) == list(range(1, 321))
    assert all(seqs == sorted(seqs) for seqs in answers.values())
    assert [record.seq for record in log.read(namespaces=["n3"])] == answers[3]


def test_callers_that_wait_share_a_commit(log: EventLog) -> None:
    """The first commit is held up by a callback, while others come."""
    commits: list[int] = []
    first_is_there, go_on = threading.Event(), threading.Event()

    def hear(last_seq: int) -> None:
        commits.append(last_seq)
        first_is_there.set()
        go_on.wait(30)

    disconnect = log.connect(hear)
    futures = [log.append_soon([draft()])]
    first_is_there.wait(30)
    futures += [log.append_soon([draft(number=number)]) for number in range(5)]
    go_on.set()
    assert [future.result()[0].seq for future in futures] == [1, 2, 3, 4, 5, 6]
    log.append(draft())
    assert commits == [1, 6, 7]
    disconnect()
    log.append(draft())
    assert commits == [1, 6, 7]


def test_a_callback_that_fails_is_logged_and_harms_nobody(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []

    def fail(last_seq: int) -> None:
        raise RuntimeError(str(last_seq))

    log.connect(fail)
    log.connect(heard.append)
    log.append(draft())
    log.append(draft())
    log.purge()
    assert heard[:2] == [1, 2]
    assert "a callback of the event log failed" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"event_id": -1}, "event_id: got -1, expected a natural number"),
        ({"prev_id": -5}, "prev_id: got -5, expected a natural number"),
        ({"namespace": ""}, "namespace: got 0 characters, expected 1 to 1024"),
        ({"namespace": "\ud800"}, "namespace: got a text that has no UTF-8"),
        ({"topic": ""}, "topic: got 0 characters, expected 1 to 1024"),
        ({"topic": "a.\ud800"}, "topic: got a text that has no UTF-8"),
        ({"visibility": Visibility(exclude_authid=("\ud800",))}, "a text of an event has no UTF-8"),
        ({"occurred_ns": 1 << 63}, "occurred_ns: got 9223372036854775808, expected nanoseconds in 64 bits"),
        ({"source": bytes(30)}, "source: got 30 bytes, expected a principal of at most 29"),
        ({"subject": "\ud800"}, "a text of an event has no UTF-8"),
    ],
)
def test_a_draft_that_cannot_be_stored_is_refused_whole(log: EventLog, wrong: dict[str, object], said: str) -> None:
    members = {"namespace": "a", "data": nat(1), "source": b"", "occurred_ns": 0, **wrong}
    with pytest.raises(ValueError, match=said):
        log.append(draft(), EventDraft(**members))  # type: ignore[arg-type]
    assert log.append(draft())[0].seq == 1


def test_a_closed_log_says_so(log: EventLog) -> None:
    log.append(draft())
    log.close()
    log.close()
    for use in (lambda: log.append(draft()), log.append, log.read, lambda: log.get(1), log.purge):
        with pytest.raises(LogClosed, match="the event log is closed"):
            use()


def test_what_waits_is_written_when_the_log_is_closed(tmp_path: Path) -> None:
    log = EventLog.open(tmp_path / "log")
    futures = [log.append_soon([draft(number=number)]) for number in range(50)]
    log.close()
    assert [future.result()[0].seq for future in futures] == list(range(1, 51))
    with EventLog.open(tmp_path / "log") as again:
        assert again.last_seq == 50


def test_a_cursor_of_before_the_history_reads_on_from_its_start(place: Path | None) -> None:
    with EventLog.open(place, retention=Retention(count=3)) as log:
        log.append(*(draft(number=number) for number in range(10)))
        assert (log.history_start, log.last_seq) == (8, 10)
        assert [record.seq for record in log.read(after=2)] == [8, 9, 10]
        assert [record.seq for record in log.read(after=2, namespaces=["a.b"], limit=2)] == [8, 9]
        assert log.get(7) is None


def test_numbers_are_not_used_again_after_everything_was_purged(tmp_path: Path) -> None:
    clock = VirtualClock(0)
    for start in (0, 5):
        with EventLog.open(tmp_path / "log", clock=clock, retention=Retention(age_seconds=10)) as log:
            records = log.append(*(draft(number=number) for number in range(5)))
            assert [record.seq for record in records] == list(range(start + 1, start + 6))
            assert records[0].prev_id == (start or None)
            clock.set(clock.now_ns() + 11 * SECOND)
            assert log.purge() == 5
            assert (log.purge(), log.read(), log.history_start, log.last_seq) == (0, [], start + 6, start + 5)


def test_an_old_event_behind_a_young_one_stays_until_that_one_goes() -> None:
    clock = VirtualClock(100 * SECOND)
    with EventLog.open(clock=clock, retention=Retention(age_seconds=10)) as log:
        log.append(draft())
        clock.set(50 * SECOND)
        log.append(draft())
        clock.set(105 * SECOND)
        assert (log.purge(), log.history_start) == (0, 1)
        clock.set(111 * SECOND)
        assert (log.purge(), log.history_start) == (2, 3)


def test_bytes_bound_what_is_stored() -> None:
    with EventLog.open(retention=Retention(bytes=5_000)) as log:
        for _ in range(30):
            log.append(EventDraft("a", text("x" * 980), b"", 0))
        assert len(log.read()) == 5
        log.append(EventDraft("a", text("x" * 6_000), b"", 0))
        assert (log.read(), log.history_start) == ([], 32)


@pytest.mark.parametrize("bound", [{"count": -1}, {"age_seconds": -0.5}, {"bytes": -2}, {"age_seconds": float("nan")}])
def test_a_retention_of_less_than_nothing_is_refused(bound: dict[str, float]) -> None:
    (name,) = bound
    with pytest.raises(ValueError, match=f"retention {name}: got .*, expected 0 or more"):
        Retention(**bound)  # type: ignore[arg-type]


def test_a_second_opening_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log") as log:
        with pytest.raises(WorkFolderInUse, match=r"log: got process .* that writes there, expected no other process"):
            EventLog.open(tmp_path / "log")
        log.append(draft())
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
    EventLog.open(tmp_path / "log").close()


def test_files_that_are_no_event_logs_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UnusableLog, match=r"other: got a folder, expected"):
        EventLog.open(other)
    file = tmp_path / "file"
    file.write_bytes(b"block,key\n1,2\n" * 10)
    with pytest.raises(UnusableLog, match=r"file: got a file that begins with b'block,key.*', expected an event log"):
        EventLog.open(file)
    assert file.read_bytes() == b"block,key\n1,2\n" * 10
    with pytest.raises(UnusableLog, match=r"log: got no such file or directory, expected a file that can be written"):
        EventLog.open(tmp_path / "missing" / "log")
    foreign = sqlite3.connect(tmp_path / "foreign")
    foreign.execute("CREATE TABLE events (seq)")
    foreign.close()
    with pytest.raises(UnusableLog, match="foreign: got an SQLite database of another program"):
        EventLog.open(tmp_path / "foreign")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("PRAGMA user_version = 1", "got an event log of schema 1, expected an event log of schema 3"),
        ("DELETE FROM topics WHERE number = 2", "got topics with gaps between their numbers"),
        ("DELETE FROM topics WHERE number = 4", "got events with a number that topics do not have"),
        ("UPDATE events SET visibility = 1 WHERE seq = 3", "got events with a number that visibilities do not have"),
        ("UPDATE visibilities SET limits = x'00'", "got rows of another form .expected a stored visibility"),
        ("DELETE FROM events WHERE seq = 3", "got event 4 in the place of 3, expected events without gaps"),
        ("DELETE FROM about", "got no single row about the log"),
        ("UPDATE about SET history_start = 0", "got no single row about the log"),
        ("DELETE FROM namespaces WHERE number = 0", "got namespaces with gaps between their numbers"),
        ("UPDATE namespaces SET last_event_id = 'soon'", "got rows of another form"),
        ("DROP TABLE topics", "got no such table: topics"),
        ("DROP TABLE events", "got no such table: events"),
        ("UPDATE events SET received_ns = 'soon' WHERE seq = 2", r"got rows of another form"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, harm: str, said: str) -> None:
    file = tmp_path / "log"
    with EventLog.open(file) as log:
        log.append(*(draft(f"n{number}", number) for number in range(5)))
    database = sqlite3.connect(file)
    database.execute(harm)
    database.commit()
    database.close()
    for _ in range(2):
        with pytest.raises(UnusableLog, match=f"log: {said}"):
            EventLog.open(file)


def test_a_file_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with EventLog.open(file) as log:
        log.append(*(draft(number=number) for number in range(500)))
    file.write_bytes(file.read_bytes()[: 4096 * 3])
    with pytest.raises(UnusableLog, match=r"log: got .*malformed.*, expected an event log of schema 3"):
        EventLog.open(file)


def test_an_event_that_is_damaged_is_named(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with EventLog.open(file) as log:
        log.append(draft(), draft(), draft())
    database = sqlite3.connect(file)
    database.execute("UPDATE events SET body = x'00' WHERE seq = 2")
    database.commit()
    database.close()
    with EventLog.open(file) as log:
        assert log.get(1) is not None
        with pytest.raises(UnusableLog, match=r"log, event 2: got .* bytes that are none"):
            log.read()


def test_a_file_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "a?mode=ro", "é %20"):
        with EventLog.open(name) as log:
            log.append(draft())
        with EventLog.open(Path(name)) as log:
            assert [record.seq for record in log.read()] == [1]


def test_the_head_of_the_file_tells_what_it_is(tmp_path: Path) -> None:
    EventLog.open(tmp_path / "log").close()
    database = sqlite3.connect(tmp_path / "log")
    assert database.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_refused_commit_appends_nothing_and_the_log_goes_on(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log") as log:
        log.append(draft("a"))
        file = sqlite3.connect(tmp_path / "log")
        file.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
        with pytest.raises(sqlite3.DatabaseError, match="the disk is full"):
            log.append(draft("b", visibility=Visibility(("x",)), topic="c"))
        assert (log.last_seq, log.last_id("b")) == (1, None)
        assert (log.topic_number("c"), len(log.topics), len(log.visibilities)) == (None, 1, 1)
        file.execute("DROP TRIGGER full")
        file.close()
        (record,) = log.append(draft("c"))
        assert (record.seq, record.prev_id, log.topic_number("c")) == (2, None, 1)
        assert log.read() == [log.get(1), record]


def test_the_index_takes_at_most_200_bytes_an_event() -> None:
    with EventLog.open() as log:
        for _ in range(20):
            log.append(*(draft(number=number) for number in range(500)))
        assert log.index_bytes <= 200 * log.last_seq


@pytest.mark.parametrize("namespaces", [None, {"a.b"}], ids=["all", "filtered"])
def test_readers_see_no_gap_but_that_of_retention(place: Path | None, namespaces: set[str] | None) -> None:
    with EventLog.open(place, retention=Retention(count=30)) as log:
        done = threading.Event()

        def work() -> None:
            for number in range(400):
                log.append_soon([draft(number=number)] * 7)
            log.purge()
            done.set()

        writer = threading.Thread(target=work)
        writer.start()
        cursor = 0
        while not (done.is_set() and cursor == log.last_seq):
            newest = log.last_seq
            seqs = [record.seq for record in log.read(cursor, limit=20, namespaces=namespaces)]
            if seqs:
                assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
                assert seqs[0] == cursor + 1 or cursor + 1 < seqs[0] <= log.history_start
                cursor = seqs[-1]
            else:
                assert cursor >= newest
        writer.join()
        assert (cursor, log.history_start) == (2_800, 2_771)


def test_a_new_log_begins_with_the_number_that_it_is_given_and_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "events.sqlite"
    with EventLog.open(file, first_seq=1_000) as log:
        assert (log.last_seq, log.history_start) == (999, 1_000)
    for number in range(2):
        with EventLog.open(file, first_seq=5_000) as log:
            if not number:
                assert (log.last_seq, log.history_start) == (4_999, 5_000)
            (record,) = log.append(draft())
            assert (record.seq, log.by_pub_id(record.pub_id)) == (5_000 + number, record)
