"""Which events reach a sink: source, types and interval first, then the filter; where a subscription begins."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cloudevents.served_gateway import MINIMAL, SINK, Api, draft, served, visit
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.cloudevents.generation import MARK_EVERY, Counting, selection_of
from relaycast_gateway.cloudevents.subscription import realized
from relaycast_gateway.icrc16 import map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventRecord

PUBLISHED, EXPIRED = "io.relaycast.data.published", "io.relaycast.key.expired"


def of_source(value: object, source: str, **more: Any) -> Any:
    return draft(value, headers=(("ce:source", text(source)),), **more)


def seqs(api: Api, sink: str = SINK) -> list[int]:
    return [int(dict(message.properties)["ce-sequence"]) for message in api.sinks.of(sink)]  # type: ignore[arg-type]


@pytest.mark.matrix("CE-08", "CE-09", "CE-11", "CE-19", "CE-23")
def test_only_the_source_and_the_types_that_were_asked_for_arrive() -> None:
    async def work(api: Api) -> None:
        sinks = {name: f"http://127.0.0.1:9/{name}" for name in ("all", "source", "types", "both")}
        await api.create(sink=sinks["all"])
        await api.create(sink=sinks["source"], source="/relay")
        await api.create(sink=sinks["types"], types=[EXPIRED, "other"])
        await api.create(sink=sinks["both"], types=[EXPIRED], source="/relay")
        api.gateway.log.append(
            of_source(1, "/relay"),
            of_source(2, "/relay/"),
            of_source(3, "/relay", namespace=EXPIRED),
            of_source(4, "/RELAY", namespace=EXPIRED),
            draft(5),
        )
        await api.settled()
        assert {name: seqs(api, sink) for name, sink in sinks.items()} == {
            "all": [1, 2, 3, 4, 5],
            "source": [1, 3],
            "types": [3, 4],
            "both": [3],
        }

    visit(work)


@pytest.mark.matrix("CE-16", "CE-31")
def test_an_interval_counts_what_source_and_types_generate_and_the_filter_comes_after() -> None:
    async def work(api: Api) -> None:
        await api.create(
            types=[PUBLISHED], config={"interval": 3}, filter={"not": {"exact": {"sequence": "00000000000000000012"}}}
        )
        for _ in range(12):
            api.publish("counted")
            api.publish("not generated", namespace=EXPIRED)
        await api.settled()
        assert seqs(api) == [5, 11, 17, 23]
        assert [(seq + 1) // 2 for seq in seqs(api)] == [3, 6, 9, 12]
        await api.create(sink=f"{SINK}/2", types=[PUBLISHED], config={"interval": 3}, filter={"exact": {"id": "S"}})
        api.publish(*range(6))
        await api.settled()
        assert seqs(api, f"{SINK}/2") == []  # 25 is the first one generated, and the filter sees only 27 and 30
        assert seqs(api) == [5, 11, 17, 23, 27, 30]

    visit(work)


@pytest.mark.matrix("CE-16")
def test_a_new_interval_counts_from_the_place_that_was_reached() -> None:
    async def work(api: Api) -> None:
        made = await api.create(config={"interval": 3})
        api.publish(*range(4))
        await api.settled()
        changed = MINIMAL | {"config": {"interval": 2}}
        await api.ask("PUT", f"/subscriptions/{made['id']}", changed)
        api.publish(*range(4))
        await api.settled()
        assert seqs(api) == [3, 6, 8]
        await api.ask("PUT", f"/subscriptions/{made['id']}", changed | {"filter": {"prefix": {"type": "io"}}})
        api.publish(*range(3))
        await api.settled()
        assert seqs(api) == [3, 6, 8, 10]

    visit(work)


@given(
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.integers(2, 7),
    st.integers(0, 20),
    st.lists(st.integers(0, 59), max_size=20),
)
def test_the_count_is_that_of_the_log_in_whatever_order_it_is_asked(
    kinds: list[bool], interval: int, start: int, asked_again: list[int]
) -> None:
    with EventLog.open() as log:
        records = log.append(*(draft(at, PUBLISHED if kind else EXPIRED) for at, kind in enumerate(kinds)))
        members = realized(MINIMAL | {"types": [PUBLISHED], "config": {"interval": interval}})
        counted = [record.seq for record in records if record.namespace == PUBLISHED and record.seq > start]
        expected = set(counted[interval - 1 :: interval])

        def fresh() -> Callable[[EventRecord], bool]:
            return selection_of(
                members, attributes_of, Counting(start, lambda after, limit: log.read(after, limit=limit))
            )

        selects = fresh()
        assert {record.seq for record in records if selects(record)} == expected
        for at in asked_again:
            record = records[at % len(records)]
            assert selects(record) == fresh()(record) == (record.seq in expected)


@pytest.mark.matrix("CE-16", "CE-03")
def test_a_count_goes_on_after_a_restart_though_the_log_has_dropped_its_beginning(tmp_path: Path) -> None:
    from relaycast_gateway.log import Retention  # noqa: PLC0415

    async def run() -> None:
        async with served(folder=tmp_path) as api:
            await api.create(config={"interval": 1_000})
            for _ in range(5):
                api.publish(*range(1_000))
            await api.settled()
            assert seqs(api) == [1_000, 2_000, 3_000, 4_000, 5_000]
        for count, taken in [(500, []), (700, [6_000]), (700, []), (700, [7_000])]:
            async with served(folder=tmp_path, retention=Retention(count=800)) as api:
                api.publish(*range(count))
                await api.settled()
                assert api.gateway.log.history_start > MARK_EVERY
                assert seqs(api) == taken

    asyncio.run(run())


@pytest.mark.parametrize(
    ("since", "first"),
    [
        (None, 7),  # events that come
        (3, 3),  # a sequence number
        (0, 1),
        ("4", 4),  # an id
        ("00000000000000000005", 5),  # the attribute sequence
        ("2023-11-14T22:13:22Z", 3),  # a time
        ("2023-11-14T23:13:22.5+01:00", 4),
        ("2030-01-01T00:00:00Z", 7),
        (7, 7),
    ],
)
def test_a_subscription_may_begin_in_the_past(since: object, first: int) -> None:
    async def work(api: Api) -> None:
        start = 1_700_000_000_000_000_000
        drafts = [draft(at)._replace(occurred_ns=start + at * 1_000_000_000) for at in range(6)]
        api.gateway.log.append(*drafts)
        await api.create(config={} if since is None else {"since": since})
        api.publish("new")
        await api.settled()
        assert seqs(api) == list(range(first, 8))
        problem = await api.refused("POST", "/subscriptions", MINIMAL | {"config": {"since": 9}})
        assert problem["member"] == "config.since"

    visit(work)


def test_config_says_what_an_event_carries() -> None:
    async def work(api: Api) -> None:
        sinks = {name: f"http://127.0.0.1:9/{name}" for name in ("full", "none", "hello", "proof")}
        for name in ("full", "none", "hello"):
            await api.create(sink=sinks[name], config={"data": name})
        await api.create(sink=sinks["proof"], config={"proof": True})
        assert api.gateway.book.needs_proofs
        api.publish(map_of({"value": nat(1), "proof": map_of({"nodes": text("x")})}))
        await api.settled()
        found = {name: api.sinks.of(sink)[0] for name, sink in sinks.items()}
        assert json.loads(found["full"].body) == {"value": 1}
        assert (found["none"].body, found["none"].content_type) == (b"", None)
        assert (found["hello"].body, found["hello"].content_type) == (b"hello", "text/plain")
        assert json.loads(found["proof"].body) == {"value": 1, "proof": {"nodes": "x"}}

    visit(work)


@pytest.mark.matrix("CE-103")
@pytest.mark.slow
def test_a_hundred_thousand_events_are_valid_cloudevents() -> None:
    emitted(100_000)


@pytest.mark.matrix("CE-103")
def test_what_is_emitted_are_valid_cloudevents() -> None:
    emitted(2_000)


def emitted(count: int) -> None:
    """Deliver ``count`` events in structured mode, and look at each of them."""
    import re  # noqa: PLC0415

    from relaycast_gateway.rfc3339 import parse_time  # noqa: PLC0415

    async def run() -> None:
        async with served() as api:
            await api.create(delivery={"contentmode": "structured", "window": 64})
            seen: set[tuple[str, str]] = set()
            for first in range(0, count, 1_000):
                api.publish(*range(first, first + 1_000))
                await api.settled()
                for event in api.sinks.bodies():
                    assert event["specversion"] == "1.0"
                    assert all(re.fullmatch(r"[a-z0-9]{1,20}|data_base64", name) for name in event)
                    assert all(event[name] for name in ("id", "source", "type", "time"))
                    parse_time(event["time"])
                    seen.add((event["source"], event["id"]))
                api.sinks.sent.clear()
            assert len(seen) == count

    asyncio.run(run())
