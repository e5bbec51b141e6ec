"""Values at the bounds of ICRC-16: every face carries them, or no face takes them."""

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gateway.cloudevents.served_gateway import Api, draft, visit
from gateway.icrc.stage import PUBLISHER, Stage
from gateway.wamp.broker_peers import Town, in_town
from gateway.wamp.dealt_sessions import DealtClient, in_loop
from gateway.wamp.historic_realm import SERIALIZERS, HistoricRealm, arguments, events
from relaycast_gateway.candid import decode as candid_decode
from relaycast_gateway.candid import encode as candid_encode
from relaycast_gateway.cloudevents.encoding import PROTOCOLS, encoder
from relaycast_gateway.icrc.interface import definitions
from relaycast_gateway.icrc.variants import icrc16_of, variant_of
from relaycast_gateway.icrc16 import (
    DEEPEST,
    MOST_NUMBER,
    NOTHING,
    WHOLE_NUMBERS,
    Icrc16,
    Property,
    Tag,
    array,
    from_json,
    map_of,
    nat,
    text,
    to_json,
)
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.group_commit import Append
from relaycast_gateway.log.record_codec import _encoded, record_hash
from relaycast_gateway.record import EventDraft, EventRecord

NAME = "com.shop.price"
TYPES = f"{definitions()}(ICRC16)"
TOO_LARGE = 10**5_000
SAYS = "got a number of about 5,000 digits, expected at most 4,300, the limit of CloudEvents and WAMP"


def nested(tag: Tag) -> Icrc16:
    """Return a value as deep as one may be."""
    value = nat(1)
    for _ in range(DEEPEST - 1):
        contents: dict[Tag, Any] = {
            Tag.ARRAY: (value,),
            Tag.SET: (value,),
            Tag.OPTION: value,
            Tag.MAP: (("a", NOTHING), ("a", value)),
            Tag.VALUE_MAP: ((NOTHING, value),),
            Tag.CLASS: (Property("$a", NOTHING, True), Property("$a", value, False)),
        }
        value = Icrc16(tag, contents[tag])
    return value


NUMBERS = [
    Icrc16(tag, number)
    for tag, (least, most) in WHOLE_NUMBERS.items()
    for number in (-MOST_NUMBER if least is None else least, MOST_NUMBER if most is None else most)
]
EXTREMES = [
    *NUMBERS,
    Icrc16(Tag.NATS, (0, 1 << 64, MOST_NUMBER)),
    Icrc16(Tag.FLOATS, (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324)),
    *(Icrc16(Tag.FLOAT, float(it)) for it in ("nan", "inf", "-inf", "-0.0", "1.7976931348623157e308")),
    *(text(it) for it in ("", "\0", "\0\0AA==", "0x", "0x00ff", "\u2028\ufffe", "a" * 70_000)),
    *(Icrc16(tag, bytes(range(256)) * 300) for tag in (Tag.BLOB, Tag.BYTES)),
    *(Icrc16(Tag.PRINCIPAL, bytes(length)) for length in (0, 29)),
    *map(nested, (Tag.ARRAY, Tag.SET, Tag.OPTION, Tag.MAP, Tag.VALUE_MAP, Tag.CLASS)),
    array(*map(nat, range(20_000))),
    map_of({str(number): NOTHING for number in range(5_000)}),
    Icrc16(Tag.MAP, (("", NOTHING), ("", nat(1)), ("$Nat", nat(2)), ("\0", nat(3)))),
    Icrc16(Tag.CLASS, (Property("", NOTHING, True), Property("", nat(1), False), Property("$Nat8", nat(2), True))),
    Icrc16(Tag.VALUE_MAP, ((array(), array()), (array(), NOTHING))),
]
names = [f"{it.tag}-{number}" for number, it in enumerate(EXTREMES)]


def append_unchecked(log: EventLog, draft: EventDraft) -> EventRecord:
    """Append an event as earlier versions took it."""
    future: Future[list[EventRecord]] = Future()
    log._writer.submit(Append([draft], [_encoded((draft.source, draft.subject, draft.data, draft.headers))], future))
    return future.result()[0]


@pytest.mark.parametrize("value", EXTREMES, ids=names)
def test_json_candid_the_log_and_every_protocol_carry_what_is_at_the_bounds(value: Icrc16, tmp_path: Path) -> None:
    assert repr(from_json(json.loads(json.dumps(to_json(value))))) == repr(value)
    assert repr(icrc16_of(candid_decode(candid_encode(TYPES, [variant_of(value)]), TYPES)[0])) == repr(value)
    with EventLog.open(tmp_path / "log") as log:
        log.append(draft(value, NAME, headers=(("ce:extreme", value),)))
        assert log.export_parquet(tmp_path / "events.parquet") == 1
    with EventLog.open(tmp_path / "log") as log:
        (record,) = log.read()
    assert repr(record.data) == repr(value)
    (row,) = pq.read_table(tmp_path / "events.parquet").to_pylist()
    assert repr(from_json(json.loads(row["data"]))) == repr(value)
    for protocol in PROTOCOLS:
        for mode in ("binary", "structured"):
            encoder(protocol, {}, mode=mode)(record)


@pytest.mark.parametrize("serializer", SERIALIZERS)
@in_loop
async def test_wamp_carries_what_is_at_the_bounds_in_one_history(serializer: str) -> None:
    with HistoricRealm() as realm:
        client = realm.client(serializer=serializer)
        before = None
        for at, value in enumerate(EXTREMES):
            (record,) = realm.log.append(draft(value, NAME))
            (event,) = history(client, realm.kept_id, before)
            before = record.pub_id
            assert event["publication"] == record.pub_id
            assert "_unreadable" not in event["details"], names[at]


def history(client: DealtClient, subscription: int, after: int | None) -> list[Any]:
    result = events(client, subscription, **({} if after is None else {"after_publication": after}))
    return arguments(result)


def unreadable(event: Any) -> tuple[Any, Any, Any]:
    """Return what a marker says: why there is no payload, and that there is none."""
    return event["details"]["_unreadable"], event.get("args"), event.get("kwargs")


@pytest.mark.parametrize("serializer", SERIALIZERS)
@in_loop
async def test_an_event_of_an_old_log_that_wamp_cannot_carry_is_a_marker_in_its_page(serializer: str) -> None:
    with HistoricRealm() as realm:
        client = realm.client(serializer=serializer)
        realm.publish(NAME, 1)
        append_unchecked(realm.log, draft(map_of({"a": array(nat(TOO_LARGE))}), NAME))
        append_unchecked(realm.log, draft(nat(1), NAME, headers=(("wamp:options", map_of({"a": nat(TOO_LARGE)})),)))
        realm.publish(NAME, 2)
        first, second, third, last = history(client, realm.kept_id, None)
        assert (first["args"], last["args"]) == ([1], [2])
        assert unreadable(second) == unreadable(third) == (SAYS, None, None)
        assert second["details"]["_event_id"] == "2"
        assert second["details"]["_source"] == f"/principal/aaaaa-aa/{NAME}"


def test_a_subscriber_gets_the_marker_live() -> None:
    async def visit(town: Town) -> None:
        reader = town.session()
        reader.subscribe("kept.a")
        append_unchecked(town.log, draft(nat(TOO_LARGE), "kept.a"))
        await town.settle()
        (event,) = reader.events
        assert event.details["_unreadable"] == SAYS
        assert not event.args

    in_town(visit)


@pytest.mark.parametrize("value", [nat(TOO_LARGE), Icrc16(Tag.INT, -TOO_LARGE), Icrc16(Tag.NATS, (TOO_LARGE,))])
def test_a_number_of_more_digits_than_every_face_carries_is_refused_where_it_is_published(value: Icrc16) -> None:
    with EventLog.open() as log:
        for wrong in (
            draft(value),
            draft(option_in_map(value)),
            draft(nat(1), headers=(("a", value),)),
        ):
            with pytest.raises(ValueError, match=SAYS):
                log.append(draft(nat(1)), wrong)
        assert log.last_seq == 0
    with Stage() as stage:
        stage.register()
        good, bad = stage.publish(stage.event(1), stage.event(2, value))
        assert (good.tag, bad.value.tag, bad.value.value["message"]) == ("Ok", "GenericError", SAYS)


def test_an_id_of_more_digits_than_every_face_carries_is_refused() -> None:
    with EventLog.open() as log:
        with pytest.raises(ValueError, match=f"event_id: {SAYS}"):
            log.append(draft(nat(1))._replace(event_id=TOO_LARGE))
        with pytest.raises(ValueError, match=f"prev_id: {SAYS}"):
            log.append(draft(nat(1))._replace(prev_id=TOO_LARGE))
    with Stage() as stage:
        stage.register()
        (result,) = stage.publish(stage.event(1) | {"id": TOO_LARGE})
        assert result.value.value["message"] == f"event_id: {SAYS}"


def option_in_map(value: Icrc16) -> Icrc16:
    return map_of({"a": Icrc16(Tag.OPTION, value)})


def test_a_table_of_an_old_log_has_a_marker_for_what_json_cannot_carry(tmp_path: Path) -> None:
    with EventLog.open() as log:
        log.append(draft(nat(1)))
        record = append_unchecked(
            log, EventDraft("a", nat(TOO_LARGE), PUBLISHER, 0, event_id=TOO_LARGE, headers=(("a", nat(TOO_LARGE)),))
        )
        log.append(draft(nat(2)))
        assert log.export_parquet(tmp_path / "events.parquet") == 3
    _, row, last = pq.read_table(tmp_path / "events.parquet").to_pylist()
    marker = {"$Unreadable": SAYS}
    assert (json.loads(row["data"]), json.loads(row["headers"]), last["data"]) == (marker, [["a", marker]], "2")
    assert (int(row["event_id"], 0), row["hash"]) == (TOO_LARGE, record_hash(record))


def test_an_event_of_an_old_log_that_cannot_be_encoded_is_a_dead_letter_and_ends_no_lane() -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        counting = await api.create(config={"interval": 2}, source="/principal/aaaaa-aa/a", sink="http://127.0.0.1:9/b")
        log = api.gateway.log
        api.publish(1, namespace="a")
        append_unchecked(log, draft(nat(TOO_LARGE), "a"))
        append_unchecked(log, draft(nat(1), "a", headers=(("ce:a", nat(TOO_LARGE)),)))
        log.append(*(draft(number, "a") for number in range(4, 7)))
        await api.settled()
        assert [letter["reason"] for letter in (await api.ask("GET", f"/deadletters/{made['id']}")).json] == [
            f"the event cannot be encoded: {SAYS}"
        ] * 2
        assert api.sinks.bodies() == ["1", "4", "5", "6"]
        letters = (await api.ask("GET", f"/deadletters/{counting['id']}")).json
        assert [(letter["sequence"], letter["reason"]) for letter in letters] == [
            (2, f"the event cannot be encoded: {SAYS}")
        ]
        assert api.sinks.bodies("http://127.0.0.1:9/b") == ["4", "6"]

    visit(work)
