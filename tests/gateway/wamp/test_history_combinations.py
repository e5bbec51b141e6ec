"""All 2^11 combinations of the arguments of ``get_events``, against a search that looks at every event."""

from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import pytest

from gateway.wamp.history_twin import answer, history
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

EVENTS = 200
PATTERN = TopicPattern("com.", Match.PREFIX)
RULES = HistoryRules([HistoryRule(PATTERN), HistoryRule(TopicPattern("org.", Match.PREFIX))])
CALLER = {"authid": "ann", "authrole": "user"}
VISIBILITIES = (EVERYBODY, EVERYBODY, EVERYBODY, Visibility(eligible_authrole=("admin",)), Visibility(("ann", "joe")))


def filled(place: Path | None) -> EventLog:
    """Return a log of 200 events; the clock is set back in their midst, and some have the same time."""
    draw, clock = Random(33), VirtualClock(1_770_000_000 * SECOND)
    log = EventLog.open(place, clock=clock)
    for number in range(EVENTS):
        clock.set(clock.now_ns() + draw.choice([0, 1, 250_000_000, SECOND]))
        if number == 110:
            clock.set(clock.now_ns() - 40 * SECOND)
        topic = draw.choice(["com.a", "com.a", "com.b", "org.a"])
        visibility = draw.choice(VISIBILITIES)
        log.append(EventDraft(topic, nat(number), b"", 0, visibility=visibility, subject=str(number)))
    return log


def arguments(whole: list[EventRecord]) -> Mapping[str, object]:
    """Return a value for each argument that leaves something out, and leaves something in with all the others."""
    at = [format_time(record.received_ns, digits=9) for record in whole]
    return {
        "reverse": True,
        "limit": 9,
        "from_time": at[14],
        "after_time": at[17],
        "before_time": at[-3],
        "until_time": at[-6],
        "topic": "com.a",
        "from_publication": whole[20].pub_id,
        "after_publication": whole[22].pub_id,
        "before_publication": whole[-9].pub_id,
        "until_publication": whole[-11].pub_id,
    }


def check(log: EventLog) -> int:
    """Compare each combination, record by record; return how many different answers there were."""
    histories = EventHistory(log, RULES)
    whole = history(log.read(limit=EVENTS), PATTERN, RULES, **CALLER)
    given = arguments(whole)
    found = cache(lambda asked: answer(whole, HistoryQuery.of([1], dict(asked))))
    answers = set()
    for chosen in product([False, True], repeat=len(given)):
        kwargs = {name: value for (name, value), is_given in zip(given.items(), chosen, strict=True) if is_given}
        query = HistoryQuery.of([1], kwargs)
        page = histories.page(PATTERN, query, most_events=1_000, **CALLER)
        assert page.records == answer(whole, query), kwargs
        unlimited = found(tuple((name, it) for name, it in kwargs.items() if name != "limit"))
        assert page.more == (len(unlimited or ()) > len(page.records)), kwargs
        assert page.history_start_ns == whole[0].received_ns
        answers.add(tuple(record.seq for record in page.records))
        if sum(chosen) == 1 or all(chosen):
            assert page.records
            assert page.records != whole
    return len(answers)


@pytest.mark.matrix("WAMP-33")
def test_every_combination_of_arguments_equals_a_search_through_all_events_in_memory() -> None:
    with filled(None) as log:
        assert check(log) > 60


@pytest.mark.matrix("WAMP-33")
@pytest.mark.parametrize("is_opened_again", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_combination_of_arguments_equals_a_search_through_all_events_of_a_file(
    is_opened_again: bool, tmp_path: Path
) -> None:
    with filled(tmp_path / "log") as log:
        if not is_opened_again:
            assert check(log) > 60
    if is_opened_again:
        with EventLog.open(tmp_path / "log") as again:
            assert check(again) > 60
