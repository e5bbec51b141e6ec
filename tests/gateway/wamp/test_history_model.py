"""Histories against a model: publish, purge, restart, set the clock, and ask as anybody."""

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gateway.wamp.history_twin import answer, history
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import array, nat
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.log.record_codec import encode_body
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

TOPICS = ("a", "a.b", "a.c", "b.c", "b.b")
EVERYTHING = TopicPattern("", Match.PREFIX)
PATTERNS = (
    EVERYTHING,
    *map(TopicPattern, TOPICS[:2]),
    TopicPattern("a", Match.PREFIX),
    TopicPattern("a.", Match.PREFIX),
    TopicPattern(".c", Match.WILDCARD),
    TopicPattern("a.", Match.WILDCARD),
)
SEEN_BY = (EVERYBODY, EVERYBODY, Visibility(eligible_authrole=("admin",)), Visibility(exclude_authid=("ann",)))
TIMES = ("from_time", "after_time", "before_time", "until_time")
PUBLICATIONS = ("from_publication", "after_publication", "before_publication", "until_publication")
CALLERS = (("ann", "user"), ("joe", "user"), ("joe", "admin"))

bounds = st.none() | st.integers(0, 9)
by_rule = st.builds(Retention, count=bounds, age_seconds=bounds, bytes=st.none() | st.integers(0, 300))
rules = st.lists(
    st.builds(
        HistoryRule,
        st.sampled_from([it for it in PATTERNS if it != EVERYTHING]),
        is_kept=st.sampled_from([True, True, False]),
        is_persistent=st.booleans(),
        retention=st.just(Retention()) | by_rule,
    ),
    max_size=3,
    unique_by=lambda it: it.pattern,
)


class Question(NamedTuple):
    """What somebody asks; publications are places in the list of all events, times are seconds."""

    pattern: TopicPattern
    caller: tuple[str, str]
    reverse: bool
    limit: int | None
    times: dict[str, int]
    publications: dict[str, int]
    topic: str | None
    most: int


questions = st.builds(
    lambda *given: Question(*given),  # noqa: PLW0108 - what builds infers for a named tuple fails
    st.sampled_from(PATTERNS) | st.just(EVERYTHING),
    st.sampled_from(CALLERS),
    st.booleans(),
    st.none() | st.integers(1, 6),
    st.just({}) | st.dictionaries(st.sampled_from(TIMES), st.integers(-10, 30), max_size=3),
    st.just({}) | st.dictionaries(st.sampled_from(PUBLICATIONS), st.integers(0, 40), max_size=2),
    st.none() | st.none() | st.sampled_from(TOPICS),
    st.integers(1, 30),
)
drafts = st.builds(
    lambda topic, size, visibility: EventDraft(topic, array(*[nat(1)] * size), b"", 0, visibility=visibility),
    st.sampled_from(TOPICS),
    st.integers(0, 20),
    st.sampled_from(SEEN_BY),
)


class HistoryMachine(RuleBasedStateMachine):
    """Asks histories and a list of records the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="relaycast-history-"))
        self.begin_ns = 1_000 * SECOND
        self.clock = VirtualClock(self.begin_ns)
        self.kept: list[EventRecord] = []
        self.sizes: dict[int, int] = {}
        self.ever: list[EventRecord] = []

    @initialize(
        on_disk=st.booleans(),
        count=st.none() | st.integers(5, 20),
        others=rules,
        retention=st.just(Retention()) | by_rule,
        digits=st.sampled_from([0, 9]),
    )
    def begin(
        self, on_disk: bool, count: int | None, others: list[HistoryRule], retention: Retention, digits: int
    ) -> None:
        given = [*others, HistoryRule(EVERYTHING, retention=retention)]
        self.path = self.folder / "log" if on_disk else None
        self.kept_by, self.digits, self.retention = HistoryRules(given), digits, Retention(count=count)
        self.log = EventLog.open(self.path, clock=self.clock, retention=self.retention)
        self.start()

    def start(self) -> None:
        self.first_seq = self.log.last_seq + 1
        self.shown_from = {it.pattern: 0 if it.is_persistent else self.first_seq for it in self.kept_by.rules}
        self.histories = EventHistory(self.log, self.kept_by, digits=self.digits, first_seq_of_run=self.first_seq)

    @rule(batch=st.lists(drafts, min_size=1, max_size=5))
    def publish(self, batch: list[EventDraft]) -> None:
        for draft, record in zip(batch, self.log.append(*batch), strict=True):
            self.sizes[record.seq] = len(encode_body(draft))
            self.ever.append(record)
        self.kept = [record for record in self.ever if record.seq >= self.log.history_start]

    @rule(seconds=st.sampled_from([1, 1, 3, 20, -1, -15]))
    def set_the_clock(self, seconds: int) -> None:
        self.clock.set(self.clock.now_ns() + seconds * SECOND + 1)

    @rule()
    def restart(self) -> None:
        if self.path is not None:
            self.log.close()
            self.log = EventLog.open(self.path, clock=self.clock, retention=self.retention)
            self.start()

    def drop(self) -> None:
        """Move the beginning of each rule's events past what it does not keep."""
        for it in self.kept_by.rules:
            own = [
                record
                for record in self.ever
                if self.kept_by.rule_for(record.topic) is it and record.seq >= self.shown_from[it.pattern]
            ]
            bound = it.retention
            if bound.count is not None:
                own = own[max(0, len(own) - bound.count) :]
            while bound.bytes is not None and sum(self.sizes[record.seq] for record in own) > bound.bytes:
                own.pop(0)
            own = [record for record in own if record.seq >= self.log.history_start]
            if bound.age_seconds is not None:
                oldest = self.clock.now_ns() - round(bound.age_seconds * SECOND)
                while own and own[0].received_ns < oldest:
                    own.pop(0)
            if bound != Retention():
                self.shown_from[it.pattern] = own[0].seq if own else self.log.last_seq + 1

    def shown(self, record: EventRecord) -> bool:
        found = self.kept_by.rule_for(record.topic)
        return found is not None and record.seq >= self.shown_from[found.pattern]

    @rule(batch=st.lists(drafts, max_size=5), asked=st.lists(questions, min_size=1, max_size=4))
    def ask(self, batch: list[EventDraft], asked: list[Question]) -> None:
        self.publish(batch)
        for question in asked:
            self.compare(question)

    def compare(self, question: Question) -> None:
        pattern, (authid, authrole), reverse, limit, times, publications, topic, most = question
        known = [*(record.pub_id for record in self.ever), 7]
        conditions = {name: self.begin_ns + seconds * SECOND for name, seconds in times.items()}
        conditions |= {name: known[at % len(known)] for name, at in publications.items()}
        query = HistoryQuery(1, reverse, limit, topic=topic, **conditions)
        self.drop()
        whole = history(filter(self.shown, self.kept), pattern, self.kept_by, authid=authid, authrole=authrole)
        expected = answer(whole, query, digits=self.digits)
        try:
            page = self.histories.page(pattern, query, authid=authid, authrole=authrole, most_events=most)
        except WampError:
            assert expected is None
            return
        assert expected is not None
        assert page.records == expected[:most]
        assert page.history_start_ns == (whole[0].received_ns if whole else None)
        if limit is None:
            assert page.more == (len(expected) > most)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.folder)


def some_retention(draw: Random) -> Retention:
    bound = draw.choice(["count", "age_seconds", "bytes", None])
    return Retention() if bound is None else Retention(**{bound: draw.randrange(3, 300 if bound == "bytes" else 15)})


def asked(draw: Random, events: int) -> Question:
    """Return a question with few conditions: most publications that it names are among the newest."""
    return Question(
        draw.choice([*PATTERNS, EVERYTHING, EVERYTHING]),
        draw.choice(CALLERS),
        draw.random() < 0.5,
        draw.choice([None, 1, 4]),
        {name: draw.randrange(60) for name in TIMES if draw.random() < 0.15},
        {name: max(0, events - draw.randrange(25)) for name in PUBLICATIONS if draw.random() < 0.15},
        draw.choice([None, None, *TOPICS]),
        draw.choice([2, 30]),
    )


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_histories_agree_with_the_model_for_a_long_life(seed: int) -> None:
    draw, machine = Random(seed), HistoryMachine()
    try:
        others = [
            HistoryRule(it, draw.random() < 0.7, draw.random() < 0.7, some_retention(draw))
            for it in draw.sample([it for it in PATTERNS if it != EVERYTHING], 2)
        ]
        machine.begin(seed % 3 == 0, draw.choice([None, 30]), others, some_retention(draw), draw.choice([0, 9]))
        for _ in range(150):
            batch = [EventDraft(draw.choice(TOPICS), nat(0), b"", 0, visibility=draw.choice(SEEN_BY)) for _ in range(2)]
            machine.ask(batch[: draw.randrange(3)] or batch, [asked(draw, len(machine.ever)) for _ in range(4)])
            if draw.random() < 0.3:
                machine.set_the_clock(draw.choice([1, 1, 3, -1, -4]))
            if draw.random() < 0.02:
                machine.restart()
    finally:
        machine.teardown()


TestHistoryModel = HistoryMachine.TestCase
TestHistoryModel.settings = settings(stateful_step_count=15)
