"""``source`` and ``id`` of an event, by which consumers know it again: unique over a log, alike on each face."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.cloudevents.encoding import PROTOCOLS, encoder
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.principal import client_principal
from relaycast_gateway.record import EventDraft, EventRecord
from relaycast_gateway.wamp.event_details import recorded_details

CHAINS = ("/oracle/relay", "/oracle/para/3000")
NAMES = ("a", "a.b", "a/b", "a%2Fb", "b", "io.relaycast.data.published", "ä b", "a?b#c")

names = st.sampled_from(NAMES)
of_chains = st.builds(
    lambda path, name: EventDraft(name, nat(1), b"chain", 0, headers=(("ce:source", text(path)),)),
    st.sampled_from(CHAINS),
    names,
)
of_clients = st.builds(
    lambda who, name: EventDraft(name, nat(1), client_principal("realm", who), 0), st.sampled_from("xy"), names
)
of_canisters = st.builds(
    lambda source, name, event_id, claim: EventDraft(
        name, nat(1), source, 0, event_id=event_id, headers=() if claim is None else (("ce:source", text(claim)),)
    ),
    st.sampled_from([b"", b"\x01", b"\x02"]),
    names,
    st.integers(0, 12) | st.just(1 << 200),
    st.sampled_from([None, "", *CHAINS, "/principal/aaaaa-aa/a", "/principal/aaaaa-aa"]),
)


def pair(record: EventRecord) -> tuple[Any, Any]:
    attributes = attributes_of(record)
    return attributes["source"], attributes["id"]


@given(st.lists(of_chains | of_clients | of_canisters, max_size=24))
def test_no_two_events_of_a_log_share_source_and_id(drafts: list[EventDraft]) -> None:
    published = set()
    with EventLog.open() as log:
        for draft in drafts:
            if draft.event_id is None or (draft.namespace, draft.event_id) not in published:
                log.append(draft)
                published.add((draft.namespace, draft.event_id))
        pairs = [pair(record) for record in log.read()]
    assert len(set(pairs)) == len(pairs)


def test_counters_of_two_topics_of_one_publisher_give_two_sources() -> None:
    with EventLog.open() as log:
        first, second = log.append(
            EventDraft("com.a", nat(1), b"\x04", 0, event_id=1), EventDraft("com.b/c", nat(1), b"\x04", 0, event_id=1)
        )
    assert pair(first) == ("/principal/2vxsx-fae/com.a", "1")
    assert pair(second) == ("/principal/2vxsx-fae/com.b%2Fc", "1")


def test_a_publisher_cannot_take_the_source_of_a_chain_for_an_id_of_its_own() -> None:
    claimed = (("ce:source", text("/oracle/relay")),)
    with EventLog.open() as log:
        first, second = log.append(
            EventDraft("com.a", nat(1), b"\x04", 0, event_id=2, headers=claimed),
            EventDraft("block", nat(1), b"\x01", 0, headers=claimed),
        )
    assert pair(first) == ("/principal/2vxsx-fae/com.a", "2")
    assert pair(second) == ("/oracle/relay", "2")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_each_protocol_carries_the_pair(protocol: str, mode: Any) -> None:
    with EventLog.open() as log:
        (record,) = log.append(EventDraft("com.a", nat(1), b"\x04", 0, event_id=7))
    message = encoder(protocol, {}, mode=mode)(record)
    told = {re.sub("^(ce[-_]|cloudEvents[:_])", "", name): str(value) for name, value in message.properties}
    told = told or json.loads(message.body)
    assert (unquote(told["source"]), told["id"]) == ("/principal/2vxsx-fae/com.a", "7")


def test_a_parquet_table_and_wamp_carry_the_pair(tmp_path: Path) -> None:
    received = (("icrc72:broadcaster:received", nat(1)),)
    with EventLog.open() as log:
        records = log.append(
            *(EventDraft(name, nat(1), b"\x04", 0, event_id=7, headers=received) for name in ("com.a", "com.b"))
        )
        log.export_parquet(tmp_path / "events.parquet")
    pairs = [pair(record) for record in records]
    rows = pq.read_table(tmp_path / "events.parquet").to_pylist()
    assert [(row["source"], row["id"]) for row in rows] == pairs
    assert [row["principal"] for row in rows] == ["2vxsx-fae"] * 2
    assert [(it["_source"], it["_event_id"]) for it in map(recorded_details, records)] == pairs
