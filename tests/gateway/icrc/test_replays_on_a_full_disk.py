"""Replays where the disk refuses, or where nobody serves them: the caller hears of it and nothing was changed."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from gateway.icrc.replay_office import READER, ReplayOffice, registration, replay_office
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.store import IcrcStore


def failing(_store: IcrcStore) -> None:
    raise sqlite3.OperationalError("disk is full")


def message_request() -> dict[str, Any]:
    return {"namespace": "com.example.prices", "range": {0: 0, 1: None}, "filter": None, "skip": None}


@pytest.mark.parametrize(
    "act",
    [
        lambda office: office.ask(READER, "icrc77_register_replay", [registration()]),
        lambda office: office.ask(READER, "icrc77_request_messages", [message_request()]),
        lambda office: office.cancel(1),
        lambda office: office.report(1, Variant("completed", 3)),
    ],
)
def test_a_call_that_the_disk_refuses_changes_nothing_and_tells_nobody(
    act: Callable[[ReplayOffice], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        assert office.register().value == 1
        store = office.orchestrator.store
        before = dict(office.orchestrator.registry.replays), store.items("replays"), list(office.heard)
        with monkeypatch.context() as patch:
            patch.setattr(IcrcStore, "flush", failing)
            with pytest.raises(CallRefused, match="nothing was stored: disk is full"):
                act(office)
        office.subnet.run(10)
        store.flush()
        assert (office.orchestrator.registry.replays, store.items("replays"), office.heard) == before
        act(office)
        assert office.orchestrator.registry.replays != before[0]


def test_a_replay_without_any_broadcaster_is_refused() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        office.orchestrator.registry.broadcasters.clear()
        assert "expected a broadcaster" in office.error().value["message"]


def test_requests_that_were_taken_are_counted() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        statistics, registry = office.orchestrator.statistics, office.orchestrator.registry
        for _ in range(2):
            office.register()
        office.error(start=5, end=4)
        (subscription,) = registry.subscriptions.values()
        found = statistics.of_subscriber(READER, subscriptions=1)
        found += statistics.of_subscription(subscription, of_the_subscriber=1)
        requests = {name: value.content for name, value in found if name.endswith(":requests")}
        assert set(requests.values()) == {2}
        assert len(requests) == 4
