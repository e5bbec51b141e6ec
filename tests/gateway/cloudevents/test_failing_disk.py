"""A disk that fails while the gateway runs: it is told, nothing is stored by half, and work goes on later."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, Api, Sinks, draft, visit
from relaycast_gateway.delivery.sender import Retryable
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.log import UnusableLog
from small_disks import small_disk

FULL = "database or disk is full"
SIZE = 1 << 20


@pytest.fixture(autouse=True)
def nothing_fails_inside() -> None:
    """Errors belong in the log here: the disk fails."""


def on_a_small_disk(folder: Path, work: Callable[[Api, Path], Awaitable[None]]) -> None:
    with small_disk(folder, SIZE) as place:
        visit(lambda api: work(api, place / "fill"), folder=place / "data")


def fill(api: Api, file: Path) -> None:
    """Leave no room: not in the file system, and not in what SQLite has taken already."""
    with suppress(OSError), file.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4_096))
    with suppress(sqlite3.OperationalError):
        while True:
            api.gateway.log.append(draft("x" * 1_000))


async def until_ready_is(api: Api, status: int) -> bytes:
    """Let time pass until the server says so; return its words."""
    while (ready := await api.ask("GET", "/readyz")).status != status:
        await api.clock.advance(1)
        await asyncio.sleep(0.005)
    return ready.data


@pytest.mark.matrix("CE-100")
def test_on_a_full_disk_nothing_is_stored_by_half_and_the_problem_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(api: Api, file: Path) -> None:
        first = await api.create()
        fill(api, file)
        last = api.gateway.log.last_seq
        for method, path, body in (
            ("POST", "/subscriptions", MINIMAL),
            ("PUT", f"/subscriptions/{first['id']}", MINIMAL | {"types": ["a"]}),
            ("DELETE", f"/subscriptions/{first['id']}", None),
        ):
            problem = await api.refused(method, path, body, status=503)
            assert problem["type"].endswith("unavailable")
            assert FULL in problem["detail"]
        assert (await api.ask("GET", "/subscriptions")).json == [first]
        assert (await api.ask("GET", f"/subscriptions/{first['id']}/delivery")).status == 200
        file.unlink()
        assert (await api.create())["id"] != first["id"]
        assert (await api.ask("DELETE", f"/subscriptions/{first['id']}")).status == 200
        api.publish("again")
        assert api.gateway.log.last_seq == last + 1  # no number was used up

    on_a_small_disk(tmp_path / "disk", work)
    assert "Traceback" not in caplog.text


def test_a_delivery_store_that_cannot_be_written_is_told_and_catches_up(tmp_path: Path) -> None:
    async def work(api: Api) -> None:
        await api.create()
        store = api.gateway.deliveries._store
        store._connection.execute(
            "CREATE TRIGGER t BEFORE INSERT ON subscription BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
        api.publish("a")
        assert await until_ready_is(api, 503) == b"deliveries are not noted: no room\n"
        assert b"relaycast_ready 0.0" in (await api.ask("GET", "/metrics")).data
        made = await api.create(types=["other"])  # kept: only its cursor is not
        assert (await api.ask("GET", f"/subscriptions/{made['id']}/delivery")).status == 200
        assert (await api.ask("PUT", f"/subscriptions/{made['id']}", MINIMAL)).status == 200
        assert (await api.ask("DELETE", f"/subscriptions/{made['id']}")).status == 200
        store._connection.execute("DROP TRIGGER t")
        await until_ready_is(api, 200)
        assert b"relaycast_ready 1.0" in (await api.ask("GET", "/metrics")).data

    visit(work, folder=tmp_path)


def test_a_server_stops_although_the_disk_is_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(api: Api, file: Path) -> None:
        await api.create()
        fill(api, file)
        await api.settled()

    with caplog.at_level(logging.ERROR):
        on_a_small_disk(tmp_path / "disk", work)
    assert "cannot rollback" not in caplog.text


def test_an_event_that_was_damaged_meanwhile_is_one_problem(tmp_path: Path) -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        api.publish("a")
        with sqlite3.connect(tmp_path / "events.sqlite") as file:
            file.execute("DROP TABLE events")
        problem = await api.refused(
            "POST", "/subscriptions", MINIMAL | {"config": {"since": "2020-01-01T00:00:00Z"}}, status=503
        )
        assert "no such table: events" in problem["detail"]
        assert [it["id"] for it in (await api.ask("GET", "/subscriptions")).json] == [made["id"]]

    visit(work, folder=tmp_path)


@pytest.mark.parametrize("members", ["{", "[]", "{}"])
def test_subscriptions_that_were_damaged_are_refused_at_the_start(tmp_path: Path, members: str) -> None:
    async def work(api: Api) -> None:
        await api.create()

    visit(work, folder=tmp_path)
    with closing(sqlite3.connect(tmp_path / "subscriptions.sqlite")) as file, file:
        file.execute("UPDATE subscriptions SET members = ?", (members,))
    with pytest.raises(UnusableLog, match=r"subscriptions.sqlite: got subscription '\w+' without its members"):
        Gateway.open(tmp_path)


def test_deliveries_that_are_ahead_of_the_log_are_refused(tmp_path: Path) -> None:
    async def work(api: Api) -> None:
        await api.create()
        api.publish("a", "b", "c")
        await api.settled()

    sinks = Sinks(answer=lambda _target, _message: Retryable("no"))  # not at the head: with a cursor of its own
    visit(work, folder=tmp_path, sinks=sinks)
    (tmp_path / "events.sqlite").unlink()
    with pytest.raises(UnusableLog, match="and a log that ends at event 0"):
        Gateway.open(tmp_path)
