"""Histories against a model: publish, purge, restart, set the clock, and ask as anybody."""

import shutil
import tempfile
from pathlib import Path

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
PATTERNS = (
    *map(TopicPattern, TOPICS[:2]),
    TopicPattern("", Match.PREFIX),
    TopicPattern("a", Match.PREFIX),
    TopicPattern("a.", Match.PREFIX),
    TopicPattern(".c", Match.WILDCARD),
    TopicPattern("a.", Match.WILDCARD),
)
SEEN_BY = (EVERYBODY, EVERYBODY, Visibility(eligible_authrole=("admin",)), Visibility(exclude_authid=("ann",)))
CONDITIONS = tuple(
    f"{which}_{kind}" for kind in ("time", "publication") for which in ("from", "after", "before", "until")
)
CALLERS = (("ann", "user"), ("joe", "user"), ("joe", "admin"))

bounds = st.none() | st.integers(0, 9)
by_rule = st.builds(Retention, count=bounds, age_seconds=bounds, bytes=st.none() | st.integers(0, 300))
rules = st.lists(
    st.builds(
        HistoryRule,
        st.sampled_from(PATTERNS),
        is_kept=st.sampled_from([True, True, False]),
        is_persistent=st.booleans(),
        retention=st.just(Retention()) | by_rule,
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda it: it.pattern,
)
moments = st.none() | st.none() | st.integers(-30, 30)
places = st.none() | st.none() | st.none() | st.integers(0, 40)
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
        on_disk=st.booleans(), count=st.none() | st.integers(5, 20), given=rules, digits=st.sampled_from([0, 9])
    )
    def begin(self, on_disk: bool, count: int | None, given: list[HistoryRule], digits: int) -> None:
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

    @rule(
        pattern=st.sampled_from(PATTERNS),
        caller=st.sampled_from(CALLERS),
        reverse=st.booleans(),
        limit=st.none() | st.integers(1, 6),
        times=st.tuples(moments, moments, moments, moments),
        topic=st.none() | st.none() | st.sampled_from(TOPICS),
        publications=st.tuples(places, places, places, places),
        most=st.integers(1, 30),
    )
    def ask(
        self,
        pattern: TopicPattern,
        caller: tuple[str, str],
        reverse: bool,
        limit: int | None,
        times: tuple[int | None, ...],
        topic: str | None,
        publications: tuple[int | None, ...],
        most: int,
    ) -> None:
        ids = [None if at is None else self.ever[at].pub_id if at < len(self.ever) else 7 for at in publications]
        bounds = [None if it is None else self.begin_ns + it * SECOND for it in times]
        conditions = dict(zip(CONDITIONS, [*bounds, *ids], strict=True))
        query = HistoryQuery(1, reverse, limit, topic=topic, **conditions)
        self.drop()
        whole = history(filter(self.shown, self.kept), pattern, self.kept_by, authid=caller[0], authrole=caller[1])
        expected = answer(whole, query, digits=self.digits)
        try:
            page = self.histories.page(pattern, query, authid=caller[0], authrole=caller[1], most_events=most)
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


TestHistoryModel = HistoryMachine.TestCase
TestHistoryModel.settings = settings(stateful_step_count=15)
