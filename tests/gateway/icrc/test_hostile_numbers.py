"""Numbers without bound: a ``nat`` may have any length, and none of them stops a canister."""

from pathlib import Path
from typing import Any

import pytest

from gateway.icrc.replay_office import READER, replay_office
from gateway.icrc.stage import Stage
from gateway.icrc.test_replayed_events import ARCHIVE, replay, replayed, with_history
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.broadcaster.replaying import ADDED_BYTES
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.names import FILTER, FILTER_LANGUAGE, PRICING, REPLAY_ID, SKIP
from relaycast_gateway.icrc.replay.book import LONGEST_ERROR, MOST_SENT
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc16 import MOST_DIGITS, Icrc16, Property, Tag, nat, text
from relaycast_gateway.log.unusable import UnusableLog

HUGE = 10**5_000
"""More digits than Python writes in decimal."""

LONGEST = 10 ** (MOST_DIGITS - 1)
"""As an id, and in data: the most that every face carries."""


def test_a_range_and_a_skip_of_huge_numbers_are_kept_over_a_restart(tmp_path: Path) -> None:
    store = IcrcStore.open(tmp_path / "icrc")
    with replay_office(store=store) as office:
        office.publication()
        office.subscription()
        result = office.register(start=HUGE, end=HUGE + 1, config={SKIP: nat(HUGE)})
        assert result.tag == "Ok"
        before = office.orchestrator.registry.replays[result.value]
    store.close()
    store = IcrcStore.open(tmp_path / "icrc")
    with replay_office(store=store) as office:
        assert office.orchestrator.registry.replays == {before.id: before}
    store.close()


def test_a_price_of_any_size_is_named_in_the_refusal() -> None:
    price = Icrc16(Tag.CLASS, (Property("perEvent", nat(HUGE), True),))
    with replay_office() as office:
        office.publication({PRICING: price})
        office.subscription()
        error = office.error()
        assert error.tag == "PaymentRequired"
        assert "the replay costs a number of" in error.value
        assert office.orchestrator.registry.replays == {}


def test_a_range_that_ends_before_it_begins_is_named_however_long_its_numbers_are() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        assert f"range: got a number of {HUGE.bit_length()} bits to 5," in office.error(start=HUGE, end=5).value


@pytest.mark.parametrize("stage", ["completed", "canceled"])
def test_a_report_of_more_events_than_can_be_is_refused_and_changes_nothing(stage: str) -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        number = office.register().value
        before = office.orchestrator.store.dump(), office.orchestrator.registry.replays[number]
        error: Any = office.report(number, Variant(stage, MOST_SENT + 1)).value
        assert error.tag == "GenericError"
        assert error.value["message"] == f"a publisher reports at most {MOST_SENT} events as sent"
        assert (office.orchestrator.store.dump(), office.orchestrator.registry.replays[number]) == before
        assert office.report(number, Variant(stage, MOST_SENT)).tag == "Ok"


def test_what_a_publisher_says_went_wrong_is_cut() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        number = office.register().value
        assert office.report(number, Variant("errored", "x" * 1_000_000)).tag == "Ok"
        assert office.state(number) == Variant("errored", "x" * LONGEST_ERROR)


def test_the_configuration_of_a_request_is_bounded() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        error = office.error(config={"note": text("x" * 70_000)})
        assert error.tag == "ImproperConfig"
        assert "expected at most 65536" in error.value


def test_a_skip_as_text_has_a_bounded_number_of_digits() -> None:
    with replay_office() as office:
        office.publication()
        office.subscription()
        item = {"namespace": "com.example.prices", "range": {0: 0, 1: None}, "filter": None, "skip": "9" * 5_000}
        with pytest.raises(CallRefused, match="ImproperConfig: skip: got '9999"):
            office.ask(READER, "icrc77_request_messages", [item])


@pytest.mark.parametrize(
    "headers",
    [
        (),  # another event has the id already
        ((REPLAY_ID, nat(1)),),  # of a replay that nobody knows
    ],
)
def test_an_event_with_a_huge_id_that_is_refused_holds_up_no_other(headers: Any) -> None:
    with Stage() as stage:
        stage.register()
        stage.publish(stage.event(LONGEST))
        good, bad = stage.publish(stage.event(1), stage.event(LONGEST, text("other"), headers=headers))
        assert (good.tag, bad.value.tag) == ("Ok", "ImproperId")
        assert stage.context.ids.claims == {}
        assert stage.publish(stage.event(2)) == [Variant("Ok", [])]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"timestamp": 1 << 70}, "timestamp: got"),
        ({"timestamp": HUGE}, ""),
    ],
)
def test_a_replayed_event_with_an_impossible_time_is_refused(changes: dict[str, Any], fault: str) -> None:
    with with_history() as stage:
        stage.broadcaster.assign_replay(replay())
        (result,) = stage.publish({**replayed(stage, 7, 103), **changes}, publisher=ARCHIVE)
        assert result.value.tag == "GenericError"
        assert fault in result.value.value["message"]
        assert stage.broadcaster.replays.waiting == 0
        assert stage.publish(replayed(stage, 7, 103), publisher=ARCHIVE)[0].tag == "Ok"


def test_a_replayed_event_brings_no_more_headers_than_an_event_has_room_for() -> None:
    with with_history() as stage:
        stage.broadcaster.assign_replay(replay())
        event = replayed(stage, 7, 103)
        pad = {0: "pad", 1: Variant("Blob", bytes(stage.policy.most_event_bytes + ADDED_BYTES))}
        (result,) = stage.publish({**event, "headers": [*event["headers"], pad]}, publisher=ARCHIVE)
        assert "headers: got" in result.value.value["message"]


def test_a_replay_is_filtered_in_the_language_of_its_publication(tmp_path: Path) -> None:
    languages = {"word": lambda word: lambda tree: tree == text(word)}
    store = IcrcStore.open(tmp_path / "icrc")
    with replay_office(store=store, filter_languages=languages) as office:
        office.publication({FILTER_LANGUAGE: text("word")})
        office.subscription()
        number = office.register(config={FILTER: text("not CandyPath (")}).value
        selects = office.orchestrator.registry.replays[number].selects
        assert selects is not None
        assert selects(text("not CandyPath ("))
    store.close()
    store = IcrcStore.open(tmp_path / "icrc")
    with replay_office(store=store, filter_languages=languages) as office:
        selects = office.orchestrator.registry.replays[number].selects
        assert selects is not None
        assert selects(text("not CandyPath ("))
        assert office.report(number, Variant("completed", 0)).tag == "Ok"
    store.close()


def test_a_damaged_row_of_a_replay_is_named() -> None:
    store = IcrcStore.open()
    store.put("replays", bytes(8), b"damaged")
    store.flush()
    with pytest.raises(UnusableLog, match="replays of another form"), replay_office(store=store):
        pass
