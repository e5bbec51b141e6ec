"""What delivery remembers."""

import sqlite3
from pathlib import Path

import pytest

from relaycast_gateway.delivery.order import DeadLetter
from relaycast_gateway.delivery.store import DeliveryStore, SavedAttempts, SavedSubscription, SaveGroup

LINE = SavedSubscription("a", 5, 3, 2, 1, "HTTP 500", None)


def test_what_was_saved_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    store = DeliveryStore.open(tmp_path / "delivery.sqlite")
    tries = [SavedAttempts(3, 2, 1_000, 2_000), SavedAttempts(4, 0, None, None)]
    store.save(SaveGroup(head=9, subscriptions=[LINE], unfinished=[("a", each) for each in tries]))
    store.save(SaveGroup(finished=[("a", 4)], dead=[DeadLetter("a", 2, "HTTP 404", 1, 77)]))
    store.close()
    store = DeliveryStore.open(tmp_path / "delivery.sqlite")
    assert store.load("a") == (LINE, tries[:1])
    assert store.load("b") is None
    assert store.ids() == ["a"]
    assert store.dead_letters("a") == [DeadLetter("a", 2, "HTTP 404", 1, 77)]
    assert store.dead_count("a") == 1
    store.close()


def test_those_at_the_head_move_with_it_until_it_is_left() -> None:
    store = DeliveryStore.open()
    assert store.leave_head() is None
    store.save(SaveGroup(head=5, subscriptions=[SavedSubscription("a", None), SavedSubscription("b", 2)]))
    store.save(SaveGroup(head=8))
    assert store.leave_head() == 8
    loaded = [store.load(name) for name in "ab"]
    assert [None if it is None else it[0].cursor for it in loaded] == [8, 2]
    assert store.leave_head() is None


def test_a_group_is_written_whole_or_not_at_all() -> None:
    store = DeliveryStore.open()
    store.save(SaveGroup(head=1, subscriptions=[LINE]))
    broken = SaveGroup(head=2, subscriptions=[SavedSubscription("b", 1)], finished=[("a", "x" * 2, 3)])  # type: ignore[list-item]
    with pytest.raises(sqlite3.Error):
        store.save(broken)
    assert store.ids() == ["a"]
    store.save(SaveGroup(subscriptions=[SavedSubscription("c", None)]))
    assert store.leave_head() == 1


def test_dead_letters_beyond_a_number_go_oldest_first() -> None:
    store = DeliveryStore.open(dead_letters_kept=3)
    store.save(SaveGroup(dead=[DeadLetter("a", seq, "r", 1, 0) for seq in (5, 1, 9, 3, 7)]))
    store.save(SaveGroup(dead=[DeadLetter("b", 1, "r", 1, 0)]))
    assert [it.seq for it in store.dead_letters("a")] == [5, 7, 9]
    assert (store.dead_count("a"), store.dead_count("b"), store.dead_count("c")) == (3, 1, 0)


def test_a_revived_letter_is_an_attempt_from_the_start() -> None:
    store = DeliveryStore.open()
    store.save(SaveGroup(subscriptions=[LINE], dead=[DeadLetter("a", seq, "r", 4, 0) for seq in (1, 2)]))
    store.revive("a", [2])
    assert [it.seq for it in store.dead_letters("a")] == [1]
    assert store.load("a") == (LINE, [SavedAttempts(2, 0, None, None)])
    assert store.dead_count("a") == 1


def test_what_is_forgotten_is_gone_from_every_table() -> None:
    store = DeliveryStore.open()
    for name in "ab":
        store.save(
            SaveGroup(
                subscriptions=[SavedSubscription(name, 1)],
                unfinished=[(name, SavedAttempts(1, 1, 1, 1))],
                dead=[DeadLetter(name, 2, "r", 1, 0)],
            )
        )
    store.forget(["a"])
    assert store.load("a") is None
    assert (store.dead_letters("a"), store.dead_count("a")) == ([], 0)
    assert store.load("b") == (SavedSubscription("b", 1), [SavedAttempts(1, 1, 1, 1)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a database, but long enough to be taken for one" * 40, "expected a delivery store"),
        (None, "got a database of version 99, expected a delivery store of version 1"),
        (b"", None),  # as a kill leaves it before the first write
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(
    tmp_path: Path, content: bytes | None, message: str | None
) -> None:
    path = tmp_path / "delivery.sqlite"
    if content is None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version=99")
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    if message is None:
        DeliveryStore.open(path).close()
        return
    with pytest.raises(ValueError, match=message):
        DeliveryStore.open(path)
    if content is not None:
        assert path.read_bytes() == before


def test_a_table_of_somebody_else_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match="got a database of version 0, expected a delivery store of version 1"):
        DeliveryStore.open(path)


def test_one_process_at_a_time_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "delivery.sqlite"
    store = DeliveryStore.open(path)
    with pytest.raises(ValueError, match="another process may have it open"):
        DeliveryStore.open(path)
    store.close()
    DeliveryStore.open(path).close()


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none/delivery\.sqlite: cannot be opened"):
        DeliveryStore.open(tmp_path / "none" / "delivery.sqlite")
