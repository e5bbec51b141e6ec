"""The broker against a model of it: lists of who is subscribed to what, compared one by one."""

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.wamp.broker_peers import Recorder, Town
from relaycast_gateway.matching.topics import Match, TopicPattern
from searches import examples

TOPICS = ["kept.a", "kept.b", "kept.a.b", "a", "a.b", "b.a.b"]
PATTERNS = [
    *[TopicPattern(topic) for topic in TOPICS],
    *[TopicPattern(uri, Match.PREFIX) for uri in ("kept.", "kept.a", "a", "b.a")],
    *[TopicPattern(uri, Match.WILDCARD) for uri in ("kept.", ".a", "..b", "kept..", "")],
]
AUTHIDS = ["ann", "bob", "cleo"]
ROLES = ["user", "admin"]

Lists = dict[str, list[Any]]
Told = tuple[int, str, int]
"""Number of the publication, its topic and the subscription."""

lists = st.fixed_dictionaries(
    {},
    optional={
        "exclude": st.lists(st.integers(1, 6), max_size=2),
        "eligible": st.lists(st.integers(1, 6), max_size=4),
        "exclude_authid": st.lists(st.sampled_from(AUTHIDS), max_size=2),
        "eligible_authid": st.lists(st.sampled_from(AUTHIDS), max_size=3),
        "exclude_authrole": st.lists(st.sampled_from(ROLES), max_size=1),
        "eligible_authrole": st.lists(st.sampled_from(ROLES), max_size=2),
    },
)


def may_receive(session: Recorder, given: Lists) -> bool:
    """The rule of six clauses, read word by word."""
    who = session.identity
    for suffix, own in (("", who.session), ("_authid", who.authid), ("_authrole", who.authrole)):
        if own in given.get(f"exclude{suffix}", []):
            return False
        if f"eligible{suffix}" in given and own not in given[f"eligible{suffix}"]:
            return False
    return True


class BrokerMachine(RuleBasedStateMachine):
    """Does the same to a broker and to a list of subscriptions."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.town = self.run(self.begin())
        self.sessions: list[Recorder] = []
        self.subscribed: list[tuple[Recorder, TopicPattern, int]] = []
        self.expected: dict[Recorder, list[Told]] = {}
        self.stored: list[int] = []
        self.count = 0

    async def begin(self) -> Town:
        town = Town()
        town.broker.start()
        return town

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @precondition(lambda self: len(self.sessions) < 5)
    @rule(
        authid=st.sampled_from(AUTHIDS), authrole=st.sampled_from(ROLES), serializer=st.sampled_from(["json", "cbor"])
    )
    def join(self, authid: str, authrole: str, serializer: str) -> None:
        session = self.town.session(authid, authrole, serializer)
        self.sessions.append(session)
        self.expected[session] = []

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), pattern=st.sampled_from(PATTERNS))
    def subscribe(self, data: st.DataObject, pattern: TopicPattern) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        number = session.subscribe(pattern.uri, match=str(pattern.match))
        known = {held: it for _, held, it in self.subscribed}
        assert known.get(pattern, number) == number
        if (session, pattern, number) not in self.subscribed:
            self.subscribed.append((session, pattern, number))

    @precondition(lambda self: self.subscribed)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.subscribed))
        one[0].unsubscribe(one[2])
        self.subscribed.remove(one)

    @precondition(lambda self: self.sessions)
    @rule(
        data=st.data(),
        topic=st.sampled_from(TOPICS),
        given=lists,
        exclude_me=st.booleans(),
    )
    def publish(self, data: st.DataObject, topic: str, given: Lists, exclude_me: bool) -> None:
        publisher = data.draw(st.sampled_from(self.sessions))
        self.count += 1
        publisher.publish(topic, [self.count], None, exclude_me=exclude_me, acknowledge=True, **given)
        self.run(self.town.settle())
        if topic.startswith("kept.") and not {"exclude", "eligible"} & given.keys():
            self.stored.append(self.count)
        for session, pattern, number in self.subscribed:
            if pattern.matches(topic) and may_receive(session, given) and not (exclude_me and session is publisher):
                self.expected[session].append((self.count, topic, number))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        session.leave()
        self.sessions.remove(session)
        self.subscribed = [one for one in self.subscribed if one[0] is not session]

    @invariant()
    def every_session_got_what_the_model_says(self) -> None:
        for session, expected in self.expected.items():
            patterns = {number: pattern for _, pattern, number in self.subscribed}
            got = []
            for it in session.events:
                assert isinstance(it.args, list)
                pattern = patterns.get(it.subscription)
                topic = next(told[1] for told in expected if told[0] == it.args[0])
                assert it.details in ({}, {"topic": topic})
                if pattern is not None:
                    assert bool(it.details) == (pattern.match is not Match.EXACT)
                got.append((it.args[0], topic, it.subscription))
            assert sorted(got) == sorted(expected)

    @invariant()
    def the_registry_holds_what_the_model_holds(self) -> None:
        registry = self.town.broker.subscriptions
        held = {(it.pattern, it.id): set(it.sessions) for it in registry if it.sessions}
        expected: dict[tuple[TopicPattern, int], set[Any]] = {}
        for session, pattern, number in self.subscribed:
            expected.setdefault((pattern, number), set()).add(session)
        assert held == expected
        assert [it.pattern for it in registry if not it.sessions and not it.is_kept] == []

    @invariant()
    def the_log_holds_what_the_model_stored(self) -> None:
        payloads = [it.data.content[0].content for it in self.town.log.read()]
        assert payloads == self.stored

    def teardown(self) -> None:
        self.run(self.town.broker.stop())
        self.town.log.close()
        self.loop.close()


TestBrokerModel = BrokerMachine.TestCase
TestBrokerModel.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
