"""Queries: pages that join up to the whole list, filters of statistics, and no trace left by any of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    DAN,
    FIRST,
    PUBLISHERS,
    SECOND,
    RegistryOffice,
    only,
    pairs,
    principals,
    raw,
    stats,
)
from relaycast_gateway.candid import Present, Principal
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from searches import examples

CALLERS = [ANN, BOB, CLEO, DAN]
EVERYBODY = pairs({PUBLISHERS + "allowed:list": principals(*CALLERS)})

LISTS: list[tuple[str, str, dict[str, Any]]] = [
    ("publishers", "publisher", {}),
    ("publications", "namespace", {}),
    ("publication_publishers", "publisher", {"namespace": "a.x"}),
    ("subscribers", "subscriber", {}),
    ("subscriptions", "subscriptionId", {}),
    ("subscriptions", "subscriptionId", {"namespace": "a.x"}),
    ("subscriber_subscriptions", "subscriptionId", {"subscriber": Principal(BOB)}),
    ("subscriber_subscriptions", "subscriptionId", {"subscriber": Principal(BOB), "namespace": "a.y"}),
    ("broadcasters", "broadcaster", {}),
    ("publication_broadcasters", "broadcaster", {"namespace": "a.x"}),
]
"""Queries whose pages go on after the last item: name, the item's field that ``prev`` takes, arguments."""


def full_office(**options: Any) -> RegistryOffice:
    """Return an office with three publishers, three publications, four subscribers and two broadcasters."""
    office = RegistryOffice(broadcasters=(FIRST, SECOND), **options)
    office.publish(BOB, "a.x", "a.y", config=EVERYBODY)
    office.publish(ANN, "a.z", "a.x")
    office.publish(CLEO, "a.x")
    for caller in (DAN, BOB, CLEO, ANN):
        office.subscribe(caller, "a.x")
    office.subscribe(BOB, "a.y", "a.*")
    office.subscribe(CLEO, "a.y", stopped=True)
    return office


def listed(office: RegistryOffice, name: str, field: str, take: int | None = None, **query: Any) -> list[Any]:
    """Return a list page by page; without ``take`` at once."""
    if take is None:
        return office.query(name, **query)
    found: list[Any] = []
    while page := office.query(name, take=take, **(query | ({"prev": found[-1][field]} if found else {}))):
        assert len(page) <= take
        found += page
    return found


@pytest.mark.parametrize(
    ("name", "field", "query", "expected"),
    [
        pytest.param("publishers", "publisher", {}, [BOB, ANN, CLEO], marks=pytest.mark.matrix("ICRC72-59")),
        pytest.param("publications", "namespace", {}, ["a.x", "a.y", "a.z"], marks=pytest.mark.matrix("ICRC72-60")),
        pytest.param(
            "publication_publishers",
            "publisher",
            {"namespace": "a.x"},
            [BOB, ANN, CLEO],
            marks=pytest.mark.matrix("ICRC72-61"),
        ),
        ("publication_publishers", "publisher", {"namespace": "a.none"}, []),
        pytest.param("subscribers", "subscriber", {}, [DAN, BOB, CLEO, ANN], marks=pytest.mark.matrix("ICRC72-62")),
        ("subscriptions", "subscriptionId", {}, [1, 2, 3, 4, 5, 6, 7]),
        pytest.param(
            "subscriptions", "subscriptionId", {"namespace": "a.x"}, [1, 2, 3, 4], marks=pytest.mark.matrix("ICRC72-63")
        ),
        ("subscriptions", "subscriptionId", {"namespace": "a.none"}, []),
        pytest.param("broadcasters", "broadcaster", {}, [FIRST, SECOND], marks=pytest.mark.matrix("ICRC72-65")),
        pytest.param(
            "publication_broadcasters",
            "broadcaster",
            {"namespace": "a.y"},
            [SECOND],
            marks=pytest.mark.matrix("ICRC72-66"),
        ),
        ("publication_broadcasters", "broadcaster", {"namespace": "a.none"}, []),
        pytest.param(
            "broadcaster_subscriptions",
            "subscriptionId",
            {"broadcaster": Principal(FIRST)},
            [1, 3, 7],
            marks=pytest.mark.matrix("ICRC72-67"),
        ),
        ("broadcaster_subscriptions", "subscriptionId", {}, [1, 2, 5, 6, 3, 7, 4]),
        ("broadcaster_subscriptions", "subscriptionId", {"broadcaster": Principal(ANN)}, []),
        ("broadcaster_subscriptions", "subscriptionId", {"caller": SECOND}, [2, 5, 6, 4]),
        pytest.param(
            "subscriber_subscriptions",
            "subscriptionId",
            {"subscriber": Principal(BOB)},
            [2, 5, 6],
            marks=pytest.mark.matrix("ICRC72-68"),
        ),
        ("subscriber_subscriptions", "subscriptionId", {"caller": CLEO}, [3, 7]),
        ("subscriber_subscriptions", "subscriptionId", {"subscriber": Principal(b"nobody")}, []),
    ],
)
def test_a_query_lists_in_the_order_of_registration(
    name: str, field: str, query: dict[str, Any], expected: list[Any]
) -> None:
    found = [info[field] for info in full_office().query(name, **query)]
    assert [it.raw if isinstance(it, Principal) else it for it in found] == expected


@pytest.mark.matrix(
    "ICRC72-59", "ICRC72-60", "ICRC72-61", "ICRC72-62", "ICRC72-63", "ICRC72-65", "ICRC72-66", "ICRC72-68"
)
@pytest.mark.parametrize(("name", "field", "query"), LISTS)
def test_pages_join_up_to_the_whole_list(name: str, field: str, query: dict[str, Any]) -> None:
    office = full_office()
    whole = listed(office, name, field, **query)
    assert whole
    for take in range(1, len(whole) + 2):
        assert listed(office, name, field, take, **query) == whole
    assert office.query(name, take=0, **query) == []
    assert office.query(name, take=10**5000, **query) == whole
    assert office.query(name, take=2, prev=whole[0][field], **query) == whole[1:3]


@pytest.mark.matrix(
    "ICRC72-59", "ICRC72-60", "ICRC72-61", "ICRC72-62", "ICRC72-63", "ICRC72-65", "ICRC72-66", "ICRC72-67", "ICRC72-68"
)
@pytest.mark.parametrize(
    ("name", "field", "query"), [*LISTS, ("broadcaster_subscriptions", "subscriber", {"broadcaster": Principal(FIRST)})]
)
def test_a_page_after_what_was_never_registered_is_refused(name: str, field: str, query: dict[str, Any]) -> None:
    office = full_office()
    unknown: list[Any] = [Principal(b"nobody")]
    if field == "namespace":
        unknown = ["a.none", "x" * 5_000]
    elif field == "subscriptionId":
        unknown = [8, 10**5000]
    for each in unknown:
        with pytest.raises(CallRefused, match=r"^prev: there is no [a-z]+ ."):
            office.query(name, prev=each, **query)


class Growth:
    """Registers one thing after the other, the same in each run."""

    def __init__(self, office: RegistryOffice) -> None:
        self.office = office
        self.number = 0

    def step(self) -> None:
        """Add a publisher with a publication, who joins ``a.x`` and subscribes there."""
        self.number += 1
        someone, office = f"someone {self.number}".encode(), self.office
        rules = principals(*CALLERS, *(f"someone {number}".encode() for number in range(1, self.number + 1)))
        office.change(BOB, "publication", publicationId=1, config=pairs({PUBLISHERS + "allowed:list": rules}))
        office.publish(someone, f"b.n{self.number}", "a.x")
        office.subscribe(someone, "a.x", "a.y")
        office.subscribe(BOB, f"a.y{self.number}.*")


@pytest.mark.matrix(
    "ICRC72-59", "ICRC72-60", "ICRC72-61", "ICRC72-62", "ICRC72-63", "ICRC72-65", "ICRC72-66", "ICRC72-68"
)
@settings(max_examples=examples(15))
@given(st.sampled_from(LISTS), st.integers(1, 4), st.lists(st.booleans(), max_size=8))
def test_pages_hold_each_item_once_while_items_are_added(
    kind: tuple[str, str, dict[str, Any]], take: int, grows: list[bool]
) -> None:
    name, field, query = kind
    office = full_office()
    growth = Growth(office)
    found: list[Any] = []
    while True:
        if grows and grows.pop():
            growth.step()
        page = office.query(name, take=take, **(query | ({"prev": found[-1]} if found else {})))
        if not page:
            break
        found += [info[field] for info in page]
    assert found == [info[field] for info in office.query(name, **query)]


@pytest.mark.matrix("ICRC72-64")
def test_subscriptions_are_told_by_position_and_null_where_there_is_none() -> None:
    office = full_office()
    answer = office.ask(DAN, "get_subscription", [5, 8, 1, 5, 0, 10**5000])
    assert [it and it["subscriptionId"] for it in answer] == [5, None, 1, 5, None, None]
    assert answer[0] == office.query("subscriptions", prev=4, take=1)[0]


@pytest.mark.matrix("ICRC72-67")
def test_pages_of_a_broadcaster_never_cut_a_subscriber_unless_they_go_on_by_subscription() -> None:
    office = full_office()
    whole = [info["subscriptionId"] for info in office.query("broadcaster_subscriptions")]
    assert whole == [1, 2, 5, 6, 3, 7, 4]
    by_subscriber: list[list[int]] = []
    previous = None
    while page := office.query("broadcaster_subscriptions", take=2, prev=previous):
        by_subscriber.append([info["subscriptionId"] for info in page])
        previous = page[-1]["subscriber"]
    assert by_subscriber == [[1, 2, 5, 6], [3, 7], [4]]
    by_id = [1]
    while page := office.query("broadcaster_subscriptions", take=2, prevId=by_id[-1]):
        assert len(page) <= 2
        by_id += [info["subscriptionId"] for info in page]
    assert by_id == whole
    both = office.query("broadcaster_subscriptions", prev=Principal(BOB), prevId=2, take=1)
    assert [info["subscriptionId"] for info in both] == [5]
    for query in ({"prevId": 8}, {"prevId": 10**5000}, {"prevId": 1, "prev": Principal(BOB)}):
        with pytest.raises(CallRefused, match=r"^prevId: (there is no subscription|expected a subscription of prev)"):
            office.query("broadcaster_subscriptions", **query)
    assert office.query("broadcaster_subscriptions", take=0) == []


@pytest.mark.matrix("ICRC72-67")
@settings(max_examples=examples(10))
@given(st.integers(1, 4), st.lists(st.booleans(), max_size=6))
def test_pages_of_a_broadcaster_by_subscription_hold_no_item_twice_while_items_are_added(
    take: int, grows: list[bool]
) -> None:
    office = full_office()
    before = [info["subscriptionId"] for info in office.query("broadcaster_subscriptions")]
    growth, found = Growth(office), [1]
    while page := office.query("broadcaster_subscriptions", take=take, prevId=found[-1]):
        found += [info["subscriptionId"] for info in page]
        if grows and grows.pop():
            growth.step()
    assert len(found) == len(set(found))
    assert set(found) >= set(before)


@pytest.mark.matrix("ICRC72-76")
@pytest.mark.parametrize(
    ("name", "query"), [*((name, query) for name, _, query in LISTS), ("broadcaster_subscriptions", {})]
)
def test_statistics_are_all_or_the_named_ones(name: str, query: dict[str, Any]) -> None:
    office = full_office()
    whole = office.query(name, **query)
    first = whole[0]["stats"][0][0]
    assert office.query(name, statsFilter=None, **query) == whole
    assert office.query(name, statsFilter=Present(None), **query) == whole
    assert all(it["stats"] == [] for it in office.query(name, statsFilter=only(), **query))
    for info, named in zip(whole, office.query(name, statsFilter=only(first, "unknown", first), **query), strict=True):
        assert named["stats"] == info["stats"][:1]
        assert {**named, "stats": info["stats"]} == info


@pytest.mark.matrix("ICRC72-97")
def test_a_page_has_no_more_items_than_the_limit() -> None:
    office = full_office(settings=OrchestratorSettings(most_taken=2))
    assert [len(office.query("subscriptions", take=take)) for take in (None, 1, 2, 3)] == [2, 1, 2, 2]
    whole = [info["subscriptionId"] for info in listed(office, "subscriptions", "subscriptionId", 2)]
    assert whole == list(range(1, 8))


@pytest.mark.matrix("ICRC72-69")
def test_queries_change_nothing() -> None:
    office = full_office()
    statistics = [list(map(stats, office.query(name, **query))) for name, _, query in LISTS]
    before = office.state()
    for name, _, query in LISTS * 2:
        office.query(name, **query)
    office.query("broadcaster_subscriptions")
    office.ask(DAN, "get_subscription", [1, 9])
    office.ask(DAN, "is_authorized_publisher", [{"namespace": "a.x", "principal": Principal(ANN)}])
    office.subnet.run(10)
    office.store.flush()
    assert office.state() == before
    assert [list(map(stats, office.query(name, **query))) for name, _, query in LISTS] == statistics


def test_replays_are_refused_where_none_are_offered() -> None:
    office = full_office()
    error = {"error_code": 3, "message": "this orchestrator offers no replays"}
    registration: dict[str, Any] = {"namespace": "a.x", "range": {0: 0, 1: None}, "config": [], "memo": None}
    for method, items in (
        ("icrc77_register_replay", [registration] * 2),
        ("icrc77_cancel_replay", [1, 2]),
    ):
        answers: Any = office.subnet.ask(BOB, office.orchestrator.principal, method, items)
        assert [(it.tag, it.value.tag, it.value.value) for it in answers] == [("Err", "GenericError", error)] * 2
    assert office.subnet.ask(BOB, office.orchestrator.principal, "icrc77_get_replays", {}) == []
    for method in ("icrc77_request_messages", "icrc77_cancel_messages_request"):
        with pytest.raises(CallRefused, match="offers no replays"):
            office.subnet.ask(BOB, office.orchestrator.principal, method, [])


def test_the_publishers_of_a_publication_are_told_with_its_lists() -> None:
    found = full_office().query("publication_publishers", namespace="a.x")
    assert [raw(it["publisher"]) for it in found] == [BOB, ANN, CLEO]
    assert [it["config"] for it in found] == [EVERYBODY, [], []]
