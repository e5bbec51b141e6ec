"""A subscription's types, source and filter select records of the log."""

from collections.abc import Mapping

import pytest

from gateway.matching.records import Noting, record
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.cloudevents.selection import selects
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.matching.predicate import SharedView

TYPE = "io.relaycast.data.published"
RECORD = record(7, TYPE)._replace(
    subject="0xabcd",
    headers=(("ce:source", text("/chains/2000")), ("ce:blocknumber", nat(12)), ("other", text("x"))),
)


@pytest.mark.matrix("CE-08")
def test_a_source_is_compared_whole() -> None:
    assert selects(source="/chains/2000")(RECORD)
    for other in ("/chains/200", "/chains/2000/", "/CHAINS/2000", "chains/2000"):
        assert not selects(source=other)(RECORD)


@pytest.mark.matrix("CE-09", "CE-19")
def test_no_source_no_types_and_no_filter_put_no_limit() -> None:
    assert selects()(RECORD)
    assert selects()(record(8, "anything"))


@pytest.mark.matrix("CE-11")
def test_types_are_compared_whole() -> None:
    assert selects(types=[TYPE])(RECORD)
    assert selects(types=["io.relaycast.key.expired", TYPE])(RECORD)
    for other in ("io.relaycast.data", TYPE.upper(), f"{TYPE}.x"):
        assert not selects(types=[other])(RECORD)
    assert not selects(types=[])(RECORD)


@pytest.mark.matrix("CE-17", "CE-18")
@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("id", "7"),
        ("type", TYPE),
        ("source", "/chains/2000"),
        ("subject", "0xabcd"),
        ("time", "1970-01-01T00:00:00.000000007Z"),
        ("sequence", "00000000000000000007"),
        ("blocknumber", "12"),
        ("datacontenttype", "application/json"),
        ("specversion", "1.0"),
    ],
)
def test_a_filter_looks_at_the_attributes_of_the_record(attribute: str, value: str) -> None:
    assert selects(condition=compile_filter({"exact": {attribute: value}}))(RECORD)
    assert not selects(condition=compile_filter({"not": {"exact": {attribute: value}}}))(RECORD)
    assert not selects(condition=compile_filter({"exact": {attribute: value + "x"}}))(RECORD)
    assert not selects(condition=compile_filter({"exact": {"other": "x"}}))(RECORD)


@pytest.mark.matrix("CE-31")
def test_types_and_source_are_looked_at_before_the_filter() -> None:
    seen: list[object] = []

    def condition(attributes: Mapping[str, object]) -> bool:
        seen.append(attributes["id"])
        return True

    assert not selects(types=["other"], source="/chains/2000", condition=condition)(RECORD)
    assert not selects(types=[TYPE], source="/other", condition=condition)(RECORD)
    assert seen == []
    assert selects(types=[TYPE], source="/chains/2000", condition=condition)(RECORD)
    assert seen == ["7"]


def test_subscriptions_share_the_attributes_of_a_record() -> None:
    make = Noting(attributes_of)
    view = SharedView(make)
    condition = compile_filter({"prefix": {"type": "io.relaycast."}})
    predicates = [selects(condition=condition, source="/chains/2000", attributes=view) for _ in range(50)]
    assert all(predicate(RECORD) for predicate in predicates)
    assert selects(types=["other"], condition=condition, attributes=view)(record(8)) is False
    assert make.seqs == [7]
