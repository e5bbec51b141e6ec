"""The store of canisters: what is durable when, and files that are no store."""

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.icrc.registry_office import ANN, BOB, CLEO, FIRST, RegistryOffice, config, ok
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.store import APPLICATION_ID, SCHEMA_VERSION, IcrcStore, number_key
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import UnusableLog
from small_disks import FULL, full_disk

steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "flush", "take_back"]),
        st.sampled_from("ab"),
        st.sampled_from([b"", b"k", b"k\0"]),
        st.binary(max_size=3),
    )
)


@given(steps)
def test_a_store_holds_what_a_dictionary_holds(those: list[tuple[str, str, bytes, bytes]]) -> None:
    store = IcrcStore.open()
    now: dict[tuple[str, bytes], bytes] = {}
    durable: dict[tuple[str, bytes], bytes] = {}
    for what, table, key, value in those:
        if what == "put":
            store.put(table, key, value)
            now[table, key] = value
        elif what == "delete":
            store.delete(table, key)
            now.pop((table, key), None)
        elif what == "flush":
            store.flush()
            durable = dict(now)
        else:
            store.take_back(table)
            kept = {place: it for place, it in now.items() if place[0] != table}
            now = kept | {place: it for place, it in durable.items() if place[0] == table}
        for name in "ab":
            assert store.items(name) == sorted((each, it) for (of, each), it in now.items() if of == name)
            assert all(store.get(name, each) == now.get((name, each)) for each in (b"", b"k", b"k\0"))
        assert store.dump() == sorted((*place, it) for place, it in durable.items())


def test_what_was_flushed_is_there_when_the_process_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "icrc.sqlite"
    store = IcrcStore.open(file)
    store.put("a", b"1", b"kept")
    store.flush()
    store.put("a", b"2", b"lost")
    store._connection.close()
    again = IcrcStore.open(file)
    assert again.items("a") == [(b"1", b"kept")]
    again.put("a", b"3", b"closed")
    again.close()
    again.close()
    last = IcrcStore.open(file)
    assert last.items("a") == [(b"1", b"kept"), (b"3", b"closed")]
    last.close()


def test_keys_are_in_the_order_of_their_numbers() -> None:
    numbers = [0, 1, 255, 256, 1 << 40, (1 << 64) - 1]
    assert sorted(map(number_key, reversed(numbers))) == [number_key(it) for it in numbers]


def test_whoever_gathers_notes_it_before_each_flush() -> None:
    store = IcrcStore.open()
    gathered = [b"1", b"2"]
    store.before_flush(lambda: store.put("a", b"k", gathered.pop(0)))
    store.flush()
    assert store.get("a", b"k") == b"1"
    store.close()
    assert gathered == []


def test_nobody_but_its_owner_reads_the_file(tmp_path: Path) -> None:
    file = tmp_path / "icrc.sqlite"
    store = IcrcStore.open(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.close()


def database(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_file_that_is_no_store_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    foreign, other, newer, odd = (tmp_path / name for name in ("foreign", "other", "newer", "odd"))
    foreign.write_bytes(b"not a database at all" * 99)
    database(other, "CREATE TABLE t (x)")
    IcrcStore.open(newer).close()
    database(newer, "PRAGMA user_version = 9")
    IcrcStore.open(odd).close()
    database(odd, "CREATE TABLE more (x)")
    expected = f"expected a store of canisters of schema {SCHEMA_VERSION}"
    for file, got in (
        (foreign, "file is not a database"),
        (other, "an SQLite database of another program"),
        (newer, "a store of schema 9 with the tables ['entries']"),
        (odd, f"a store of schema {SCHEMA_VERSION} with the tables ['entries', 'more']"),
    ):
        content = file.read_bytes()
        with pytest.raises(UnusableLog) as refused:
            IcrcStore.open(file)
        assert str(refused.value) == f"{file}: got {got}, {expected}"
        assert file.read_bytes() == content
    assert APPLICATION_ID.to_bytes(4, "big") == b"rcIC"


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableLog, match="got is a directory, expected a file that can be written"):
        IcrcStore.open(tmp_path)
    with pytest.raises(UnusableLog, match="got no such file or directory, expected a file that can be written"):
        IcrcStore.open(tmp_path / "none" / "icrc.sqlite")
    with full_disk(tmp_path / "disk") as folder, pytest.raises(UnusableLog) as refused:
        IcrcStore.open(folder / "icrc.sqlite")
    assert any(word in str(refused.value).lower() for word in (*FULL, "disk is full", "disk i/o error"))


def test_a_file_that_another_process_has_open_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "icrc.sqlite"
    store = IcrcStore.open(file)
    with pytest.raises(UnusableLog, match="got database is locked, expected a store"):
        IcrcStore.open(file)
    store.close()


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("publication", number_key(3), b"\xff"),
        ("publisher", number_key(3), b"\x94\x09\xc4\x02p\x01\xc4\x01\x90\xc4\x00"),  # of no publication
        ("publisher", number_key(3), b"\x92\x01\x02"),
        ("subscription", number_key(3), b"junk"),
        ("statistics:publication", b"com.foo", b"\x91\x01"),  # of four counters
        ("statistics:pair", b"", b"\xc1"),
    ],
)
def test_values_of_another_form_are_refused_in_one_line(table: str, key: bytes, value: bytes) -> None:
    store = IcrcStore.open()
    RegistryOffice(store).publish(ANN, "com.foo")
    store.put(table, key, value)
    store.flush()
    with pytest.raises(UnusableLog, match=r"^memory: got .* of another form .*, expected a store of canisters.*$"):
        RegistryOffice(store)


@pytest.mark.parametrize(
    "method",
    ["register_publication", "register_subscription", "update_publication", "update_subscription", "adopt", "list"],
)
def test_what_the_disk_refuses_is_not_registered(tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture) -> None:
    store = IcrcStore.open(tmp_path / "icrc.sqlite")
    office = RegistryOffice(store)
    office.publish(ANN, "com.foo")
    office.subscribe(BOB, "com.foo", filter="a == 1")
    before = office.kept()
    store._connection.execute("PRAGMA query_only = ON")
    items: dict[str, Any] = {
        "register_publication": {"namespace": "com.bar", "config": []},
        "register_subscription": {"namespace": "com.*", "config": []},
        "update_publication": {"publicationId": 1, "config": config(a=nat(1))},
        "update_subscription": {"subscriptionId": 1, "newFilter": ""},
    }
    caller = BOB if "subscription" in method else ANN
    if method == "list":
        with pytest.raises(sqlite3.OperationalError):
            office.orchestrator.lists.add(CLEO, "x", ANN)
        assert not office.orchestrator.lists.has(CLEO, "x", ANN)
    elif method == "adopt":
        assert office.orchestrator.adopt("com.bar", FIRST)
        office.subnet.run(1)
        assert "cannot write the store of the canisters: attempt to write a readonly database" in caplog.text
    else:
        with pytest.raises(CallRefused, match=r"^nothing was stored: attempt to write a readonly database$"):
            office.ask(caller, method, [items[method]])
        assert office.kept() == before
    store._connection.execute("PRAGMA query_only = OFF")
    if method != "adopt":
        store.flush()
        assert store.dump() == before[3]  # type: ignore[index]
    assert office.publish(CLEO, "com.baz") == [ok(3 if method == "adopt" else 2)]
    assert RegistryOffice(store).kept() == office.kept()
    store.close()
