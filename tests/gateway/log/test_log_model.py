"""The event log against a model of it: a list of records and a few rules."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import array, nat
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.log.record_codec import encode_body
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility

NAMESPACES = ["a", "a.b", "b", "c.d.e"]

visibilities = st.sampled_from([EVERYBODY, Visibility(("a",)), Visibility(exclude_authrole=("b", "c"))])
drafts = st.builds(
    lambda *given, **more: EventDraft(*given, **more),  # noqa: PLW0108 - what builds infers for a named tuple fails
    st.sampled_from(NAMESPACES),
    st.one_of(st.integers(0, 1 << 70).map(nat), st.integers(0, 60).map(lambda size: array(*[nat(1)] * size))),
    st.binary(max_size=3),
    st.integers(0, 20),
    event_id=st.none() | st.integers(0, 1 << 70),
    prev_id=st.none() | st.none() | st.integers(0, 9),
    is_ordered=st.booleans(),
    topic=st.none() | st.sampled_from([*NAMESPACES, "d"]),
    visibility=visibilities,
)
bounds = st.none() | st.integers(0, 22)
retentions = st.builds(
    Retention,
    count=st.none() | st.integers(0, 12),
    age_seconds=st.none() | st.integers(0, 15),
    bytes=st.none() | st.integers(0, 800),
)


class LogMachine(RuleBasedStateMachine):
    """Does the same to a log and to a list."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="relaycast-log-"))
        self.clock = VirtualClock(100 * SECOND)
        self.kept: list[EventRecord] = []
        self.count = 0
        self.last_ids: dict[str, int] = {}
        self.pub_ids: set[int] = set()

    @initialize(on_disk=st.booleans(), retention=retentions)
    def begin(self, on_disk: bool, retention: Retention) -> None:
        self.path = self.folder / "log" if on_disk else None
        self.retention = retention
        self.log = EventLog.open(self.path, clock=self.clock, retention=retention)

    @rule(batch=st.lists(drafts, max_size=4))
    def append(self, batch: list[EventDraft]) -> None:
        self.note(batch, self.log.append(*batch))

    @rule(batches=st.lists(st.lists(drafts, min_size=1, max_size=3), min_size=1, max_size=3))
    def append_soon(self, batches: list[list[EventDraft]]) -> None:
        """Retention may run between the batches or after them: what stays is the same."""
        futures = [self.log.append_soon(batch) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            self.note(batch, future.result())

    def note(self, batch: list[EventDraft], records: list[EventRecord]) -> None:
        for draft, record in zip(batch, records, strict=True):
            self.count += 1
            event_id = self.count if draft.event_id is None else draft.event_id
            last_id = self.last_ids.get(draft.namespace) if draft.is_ordered else None
            assert record == EventRecord(
                seq=self.count,
                event_id=event_id,
                prev_id=last_id if draft.prev_id is None else draft.prev_id,
                pub_id=record.pub_id,
                occurred_ns=draft.occurred_ns,
                received_ns=self.clock.now_ns(),
                namespace=draft.namespace,
                source=draft.source,
                subject=draft.subject,
                data=draft.data,
                headers=draft.headers,
                visibility=draft.visibility,
                own_topic=None if draft.topic == draft.namespace else draft.topic,
            )
            assert record.topic == (draft.topic or draft.namespace)
            assert record.pub_id not in self.pub_ids
            self.pub_ids.add(record.pub_id)
            self.last_ids[draft.namespace] = event_id
            self.kept.append(record)
        if batch:
            self.drop()

    def drop(self) -> int:
        """Drop from the front for as long as a bound is broken."""
        bound, before = self.retention, len(self.kept)
        if bound.count is not None:
            self.kept = self.kept[max(0, len(self.kept) - bound.count) :]
        while bound.bytes is not None and sum(map(stored_bytes, self.kept)) > bound.bytes:
            self.kept.pop(0)
        if bound.age_seconds is not None:
            oldest = self.clock.now_ns() - round(bound.age_seconds * SECOND)
            while self.kept and self.kept[0].received_ns < oldest:
                self.kept.pop(0)
        return before - len(self.kept)

    @rule(
        after=st.integers(-1, 40),
        limit=st.integers(0, 8),
        before=st.none() | st.integers(0, 40),
        namespaces=st.none() | st.sets(st.sampled_from([*NAMESPACES, "unknown"])),
        occurred=st.tuples(bounds, bounds),
        received=st.tuples(bounds, bounds),
    )
    def read(
        self,
        after: int,
        limit: int,
        before: int | None,
        namespaces: set[str] | None,
        occurred: tuple[int | None, int | None],
        received: tuple[int | None, int | None],
    ) -> None:
        moments = [None if bound is None else (90 + bound) * SECOND for bound in received]
        found = self.log.read(
            after,
            limit=limit,
            before=before,
            namespaces=namespaces,
            occurred_from=occurred[0],
            occurred_before=occurred[1],
            received_from=moments[0],
            received_before=moments[1],
        )
        assert (
            found
            == [
                record
                for record in self.kept
                if record.seq > after
                and (before is None or record.seq < before)
                and (namespaces is None or record.namespace in namespaces)
                and within(record.occurred_ns, *occurred)
                and within(record.received_ns, *moments)
            ][:limit]
        )

    @rule(seq=st.integers(-1, 40))
    def get(self, seq: int) -> None:
        known = next((record for record in self.kept if record.seq == seq), None)
        assert self.log.get(seq) == known
        if known is not None:
            assert self.log.by_pub_id(known.pub_id) == known
            assert self.log.seq_of(known.pub_id) == seq

    @rule(seqs=st.lists(st.integers(-1, 40), max_size=6))
    def records(self, seqs: list[int]) -> None:
        known = {record.seq: record for record in self.kept}
        assert self.log.records(seqs) == [known[seq] for seq in seqs if seq in known]

    @rule(start=st.integers(-1, 40), end=st.integers(-1, 45))
    def slice(self, start: int, end: int) -> None:
        first, rows = self.log.slice(start, end)
        found = [
            (seq, self.log.topics[topic], self.log.visibilities[seer], received_ns)
            for seq, (topic, seer, received_ns) in enumerate(
                zip(rows.topic, rows.visibility, rows.received_ns, strict=True), first
            )
        ]
        assert found == [
            (record.seq, record.topic, record.visibility, record.received_ns)
            for record in self.kept
            if start <= record.seq < end
        ]
        assert all(self.log.topics[self.log.topic_number(topic) or 0] == topic for _, topic, _, _ in found)

    @rule(seconds=st.integers(-8, 8))
    def set_the_clock(self, seconds: int) -> None:
        self.clock.set(max(0, self.clock.now_ns() + seconds * SECOND))

    @rule()
    def purge(self) -> None:
        assert self.log.purge() == self.drop()

    @rule(retention=st.none() | retentions)
    def reopen(self, retention: Retention | None) -> None:
        if self.path is not None:
            self.log.close()
            self.retention = retention or self.retention
            self.log = EventLog.open(self.path, clock=self.clock, retention=self.retention)

    @invariant()
    def the_ends_are_right(self) -> None:
        assert self.log.last_seq == self.count
        assert self.log.history_start == (self.kept[0].seq if self.kept else self.count + 1)
        assert {name: self.log.last_id(name) for name in self.last_ids} == self.last_ids

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.folder)


def within(moment: int, start: int | None, end: int | None) -> bool:
    return (start is None or moment >= start) and (end is None or moment < end)


def stored_bytes(record: EventRecord) -> int:
    draft = EventDraft(record.namespace, record.data, record.source, record.occurred_ns)
    return len(encode_body(draft._replace(subject=record.subject, headers=record.headers)))


TestLogModel = LogMachine.TestCase
TestLogModel.settings = settings(stateful_step_count=15)
