"""The orchestrator against a model of it: dictionaries of what was registered, through updates and restarts."""

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    FIRST,
    PUBLISHERS,
    SECOND,
    SUBSCRIBERS,
    RegistryOffice,
    err,
    ok,
    pairs,
    principals,
    raw,
    unauthorized_publisher,
    unauthorized_subscriber,
)
from relaycast_gateway.candid import Present, Principal, Variant
from relaycast_gateway.icrc.names import FILTER, SKIP, STOPPED
from relaycast_gateway.icrc.orchestrator import OrchestratorSettings
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc16 import NOTHING, Icrc16, boolean, nat, text
from searches import examples

CALLERS = [ANN, BOB, CLEO]
NAMESPACES = ["a.x", "a.y", "b", "icrc72:sys", "no such"]
PATTERNS = ["a.x", "a.y", "b", "a.*", "c.c"]
LIMIT = 3

Config = dict[str, Icrc16]
"""Configuration of a publication or a subscription."""

LISTS = [f"{who}{verdict}:list" for who in (PUBLISHERS, SUBSCRIBERS) for verdict in ("allowed", "disallowed")]
some_lists = st.dictionaries(
    st.sampled_from(LISTS),
    st.lists(st.sampled_from(CALLERS), unique=True, max_size=3).map(lambda it: principals(*it)),
    max_size=3,
)
filters = st.sampled_from(["", "a == 1", "b", "a == 1", "b", "a =="])
skips = st.sampled_from([1, 5, 7, 1, 5, 7, 0])
memos = st.sampled_from([b"", b"m", b"", b"m", bytes(33)])
some_keys = st.fixed_dictionaries(
    {},
    optional={
        FILTER: filters.map(text),
        SKIP: skips.map(nat),
        STOPPED: st.booleans().map(boolean),
        "x": st.just(nat(1)),
    },
)
callers = st.sampled_from(CALLERS)
updaters = st.integers(0, 8).map(lambda it: CALLERS[it] if it < len(CALLERS) else None)
"""Mostly whoever owns what is updated: ``None``."""

MEMO = err("GenericError", {"error_code": 1, "message": "memo: got 33 bytes, expected at most 32"})
IMPROPER = err("ImproperConfig")


@dataclass
class Feed:
    """A publication of the model."""

    id: int
    publishers: dict[bytes, Config] = field(default_factory=dict)

    def lets(self, who: str, principal: bytes) -> bool:
        """Return whether the owner's lists let a principal pass."""
        owner, config = next(iter(self.publishers.items()))
        allowed, disallowed = (config.get(f"{who}{verdict}:list") for verdict in ("allowed", "disallowed"))
        if disallowed is not None and principal in [it.content for it in disallowed.content]:
            return False
        if allowed is None:
            return who == SUBSCRIBERS or principal == owner
        return principal in [it.content for it in allowed.content]


@dataclass(frozen=True)
class Want:
    """A subscription of the model."""

    subscriber: bytes
    namespace: str
    config: tuple[tuple[str, Icrc16], ...]
    filter: str | None
    mod: int | None
    is_stopped: bool
    since: int


def alike(answer: Variant, expected: Variant) -> bool:
    """Return whether two results are the same, whatever text ``ImproperConfig`` has."""
    if expected == IMPROPER:
        return isinstance(answer.value, Variant) and answer.value.tag == "ImproperConfig"
    return answer == expected


class OfficeMachine(RuleBasedStateMachine):
    """Does the same to an orchestrator and to dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "icrc.sqlite"
        self.feeds: dict[str, Feed] = {}
        self.wants: dict[int, Want] = {}
        self.seq = 0
        self.open()

    def open(self) -> None:
        strict = OrchestratorSettings(most_items=LIMIT)
        self.office = RegistryOffice(IcrcStore.open(self.file), (FIRST, SECOND), settings=strict)
        self.office.last_seq = self.seq

    @initialize(caller=callers, subscribers=st.lists(callers, unique=True))
    def begin(self, caller: bytes, subscribers: list[bytes]) -> None:
        self.register_publications(caller, ["a.x", "a.y"], {}, b"")
        for each in subscribers:
            self.register_subscriptions(each, ["a.x", "a.*"], {}, {"mod": 5, "filter": "b"})

    @rule(is_killed=st.booleans())
    def restart(self, is_killed: bool) -> None:
        if is_killed:
            self.office.store._connection.close()
        else:
            self.office.store.close()
        self.open()

    @rule(events=st.integers(1, 5))
    def publish_events(self, events: int) -> None:
        self.seq += events
        self.office.last_seq = self.seq

    @rule(
        caller=callers,
        namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=LIMIT + 2),
        config=some_lists,
        memo=memos,
    )
    def register_publications(self, caller: bytes, namespaces: list[str], config: Config, memo: bytes) -> None:
        before = self.office.state()
        answers = self.office.publish(caller, *namespaces, config=pairs(config), memo=memo)
        expected = [self.expected_publication(caller, it, config, memo) for it in namespaces[:LIMIT]]
        self.check_batch(answers, expected, len(namespaces))
        if all(it.tag == "Err" for it in answers):
            assert self.office.state() == before

    def expected_publication(  # noqa: PLR0911 - one for each answer
        self, caller: bytes, namespace: str, config: Config, memo: bytes
    ) -> Variant:
        """Return what a registration answers, and register it in the model."""
        if namespace == "no such":
            return IMPROPER
        if namespace.startswith("icrc72:"):
            return unauthorized_publisher(namespace)
        if len(memo) > 32:
            return MEMO
        feed = self.feeds.get(namespace)
        if feed is not None:
            if caller in feed.publishers:
                return ok(feed.id) if feed.publishers[caller] == config else err("Exists", feed.id)
            if not feed.lets(PUBLISHERS, caller):
                return err("Unauthorized")
            owned = next(iter(feed.publishers.values()))
            if any(owned.get(key) != value for key, value in config.items()):
                return IMPROPER
        feed = self.feeds.setdefault(namespace, Feed(len(self.feeds) + 1))
        feed.publishers[caller] = config
        return ok(feed.id)

    @rule(
        caller=updaters, number=st.integers(1, 4), change=some_lists, gone=st.sets(st.sampled_from(LISTS)), memo=memos
    )
    def update_publication(
        self, caller: bytes | None, number: int, change: Config, gone: set[str], memo: bytes
    ) -> None:
        said = change | dict.fromkeys(gone, NOTHING)
        before = self.office.state()
        number = 1 + number % (len(self.feeds) + 1)
        feed = next((it for it in self.feeds.values() if it.id == number), None)
        caller = caller or (ANN if feed is None else next(iter(feed.publishers)))
        answer = self.office.change(caller, "publication", publicationId=number, config=pairs(said), memo=memo)
        expected = ok(True)
        if feed is None:
            expected = err("NotFound")
        elif caller not in feed.publishers:
            expected = err("Unauthorized")
        else:
            own = feed.publishers[caller]
            config = {key: value for key, value in (own | said).items() if value != NOTHING}
            if caller != next(iter(feed.publishers)) and config != own:
                expected = err("Unauthorized")
            elif len(memo) > 32:
                expected = MEMO
            else:
                feed.publishers[caller] = config
        assert alike(answer, expected)
        if answer != ok(True):
            assert self.office.state() == before

    @rule(namespace=st.sampled_from(NAMESPACES), publisher=callers)
    def adopt(self, namespace: str, publisher: bytes) -> None:
        is_one = namespace not in {"no such", "icrc72:sys"}
        assert self.office.orchestrator.adopt(namespace, publisher) is is_one
        self.office.subnet.run()
        if is_one:
            feed = self.feeds.setdefault(namespace, Feed(len(self.feeds) + 1))
            feed.publishers.setdefault(publisher, {})

    @rule(
        caller=callers,
        namespaces=st.lists(st.sampled_from(PATTERNS), max_size=LIMIT + 2),
        config=some_keys,
        field=st.fixed_dictionaries({}, optional={"filter": filters, "mod": skips, "stopped": st.booleans()}),
    )
    def register_subscriptions(
        self, caller: bytes, namespaces: list[str], config: Config, field: dict[str, Any]
    ) -> None:
        before = self.office.state()
        item = {key: value for key, value in field.items() if key != "mod"}
        item |= {"skip": {0: field["mod"], 1: None}} if "mod" in field else {}
        answers = self.office.subscribe(caller, *namespaces, config=pairs(config), **item)
        expected = [self.expected_subscription(caller, it, config, field) for it in namespaces[:LIMIT]]
        self.check_batch(answers, expected, len(namespaces))
        if all(it.tag == "Err" for it in answers):
            assert self.office.state() == before

    def expected_subscription(  # noqa: PLR0911 - one for each answer
        self, caller: bytes, namespace: str, config: Config, field: dict[str, Any]
    ) -> Variant:
        """Return what a registration answers, and register it in the model."""
        keys = {FILTER: "filter", SKIP: "mod"}
        if any(key in config and name in field and config[key].content != field[name] for key, name in keys.items()):
            return IMPROPER
        said = {name: config[key].content for key, name in keys.items() if key in config} | field
        if said.get("mod") == 0:
            return IMPROPER
        is_stopped = bool(field.get("stopped")) or (STOPPED in config and config[STOPPED].content)
        want = Want(
            caller, namespace, tuple(config.items()), said.get("filter") or None, said.get("mod"), is_stopped, self.seq
        )
        known = self.known(want)
        if known is not None:
            same = replace(self.wants[known], since=self.seq) == want
            return ok(known) if same else err("Exists", known)
        if "*" not in namespace:
            feed = self.feeds.get(namespace)
            if feed is None:
                return err("PublicationNotFound")
            if not feed.lets(SUBSCRIBERS, caller):
                return unauthorized_subscriber(namespace)
        if want.filter == "a ==":
            return IMPROPER
        self.wants[len(self.wants) + 1] = want
        return ok(len(self.wants))

    def known(self, want: Want) -> int | None:
        """Return the id of the subscription of the same subscriber to the same namespaces."""
        for number, each in self.wants.items():
            if (each.subscriber, each.namespace) == (want.subscriber, want.namespace):
                return number
        return None

    @rule(
        caller=updaters,
        number=st.integers(1, 5),
        filter_=st.none() | filters,
        mod=st.sampled_from([None, "clear"]) | skips,
        is_stopped=st.none() | st.booleans(),
        keys=st.dictionaries(st.sampled_from(["x", FILTER]), st.sampled_from([NOTHING, text("b")]), max_size=2),
    )
    def update_subscription(
        self, caller: bytes | None, number: int, filter_: str | None, mod: Any, is_stopped: bool | None, keys: Config
    ) -> None:
        number = 1 + number % (len(self.wants) + 1)
        caller = caller or (ANN if number not in self.wants else self.wants[number].subscriber)
        change: dict[str, Any] = {"newFilter": filter_, "newStopped": is_stopped, "newConfig": pairs(keys)}
        if mod is not None:
            change["newSkip"] = Present(None if mod == "clear" else {0: mod, 1: None})
        before = self.office.state()
        answer = self.office.change(caller, "subscription", subscriptionId=number, **change)
        expected = self.expected_update(caller, number, filter_, mod, is_stopped, keys)
        assert alike(answer, expected)
        if answer != ok(True):
            assert self.office.state() == before

    def expected_update(
        self, caller: bytes, number: int, filter_: str | None, mod: Any, is_stopped: bool | None, keys: Config
    ) -> Variant:
        """Return what an update answers, and change the model."""
        want = self.wants.get(number)
        if want is None:
            return err("NotFound")
        if want.subscriber != caller:
            return err("Unauthorized")
        by_key = None if FILTER not in keys else keys[FILTER].content or ""
        if mod == 0 or "a ==" in {filter_, by_key} or (None not in {filter_, by_key} and filter_ != by_key):
            return IMPROPER
        config = {key: it for key, it in (dict(want.config) | keys).items() if it != NOTHING}
        said = filter_ if filter_ is not None else by_key
        if filter_ is not None and FILTER in config and config[FILTER].content != filter_:
            del config[FILTER]
        new_mod = want.mod if mod is None else None if mod == "clear" else mod
        if mod is not None and SKIP in config and config[SKIP].content != new_mod:
            del config[SKIP]
        if is_stopped is not None and STOPPED in config and config[STOPPED].content != is_stopped:
            del config[STOPPED]
        now_stopped = want.is_stopped if is_stopped is None else is_stopped
        self.wants[number] = replace(
            want,
            config=tuple(config.items()),
            filter=want.filter if said is None else said or None,
            mod=new_mod,
            is_stopped=now_stopped,
            since=self.seq if want.is_stopped and not now_stopped else want.since,
        )
        return ok(True)

    def check_batch(self, answers: list[Variant], expected: list[Variant], asked: int) -> None:
        if asked > LIMIT:
            expected = [*expected, err("GenericBatchError", f"expected at most {LIMIT} items in a batch, got {asked}")]
        assert len(answers) == len(expected)
        assert all(map(alike, answers, expected)), (answers, expected)

    @invariant()
    def publications_are_those_of_the_model(self) -> None:
        office = self.office
        ordered = sorted(self.feeds.items(), key=lambda it: it[1].id)
        found = [(it["namespace"], it["publicationId"], it["config"]) for it in office.query("publications")]
        assert found == [(name, feed.id, pairs(next(iter(feed.publishers.values())))) for name, feed in ordered]
        for name, feed in ordered:
            infos = office.query("publication_publishers", namespace=name)
            assert [(raw(it["publisher"]), it["config"]) for it in infos] == [
                (publisher, pairs(config)) for publisher, config in feed.publishers.items()
            ]
            asked = [{"namespace": name, "principal": Principal(it)} for it in CALLERS]
            assert office.ask(ANN, "is_authorized_publisher", asked) == [
                it in feed.publishers and feed.lets(PUBLISHERS, it) for it in CALLERS
            ]
            assert all(office.orchestrator.may_receive(name, it) == feed.lets(SUBSCRIBERS, it) for it in CALLERS)

    @invariant()
    def subscriptions_are_those_of_the_model(self) -> None:
        registry, places = self.office.orchestrator.registry, dict[bytes, bytes]()
        assert registry.subscriptions.keys() == self.wants.keys()
        for number, it in registry.subscriptions.items():
            skip = None if it.skip is None else it.skip.mod
            found = Want(it.subscriber, it.namespace, it.config, it.filter, skip, it.is_stopped, it.since)
            assert found == self.wants[number]
            assert (it.selects is None) == (it.filter is None)
            assert places.setdefault(it.subscriber, it.broadcaster) == it.broadcaster

    def teardown(self) -> None:
        self.office.store.close()
        self.folder.cleanup()


TestOrchestratorModel = OfficeMachine.TestCase
TestOrchestratorModel.settings = settings(max_examples=examples(25), stateful_step_count=25, deadline=None)
