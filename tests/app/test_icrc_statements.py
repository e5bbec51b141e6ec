"""The statements of ICRC-72 and ICRC-77 that one call or a few decide, by their sections, over HTTP in Candid.

One server is there for all rows. Alice publishes; each row has a namespace of its own, and a subscriber where it needs
one, as few replays of one subscriber run at the same time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

import relaycast as rc
from app.icrc_wire import Served
from app.served_canisters import ALICE, BOB, call, event, registration
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.candid import Present, Principal, Variant
from relaycast_gateway.icrc.names import CAPABLE, FILTER, SKIP, STOPPED, SUBSCRIBER_URL
from relaycast_gateway.icrc.variants import headers_of, pairs_of
from relaycast_gateway.icrc16 import Icrc16, array, blob, boolean, nat, text
from relaycast_gateway.icrc_face import BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import client_principal

CAROL = client_principal("test", "carol")
NOWHERE = "http://127.0.0.1:1"
ALLOWED, DISALLOWED = (f"icrc72:publication:{{}}:{it}:list" for it in ("allowed", "disallowed"))
PAGE = {"prev": None, "take": None, "statsFilter": None}


def tag(result: Any) -> str:
    """Return ``Ok``, or the error's name."""
    return str(result.tag if result.tag == "Ok" else result.value.tag)


class Office(Served):
    """Orchestrator and broadcaster as Alice, Bob and Carol call them."""

    def __init__(self, chains: ServedNetwork) -> None:
        super().__init__(chains)
        self._numbers = count(1)
        self.subscriber = BOB

    def fresh(self) -> str:
        return f"com.example.statements.n{next(self._numbers)}"

    def feed(self, **config: Icrc16) -> str:
        """Return a publication of Alice's with two events."""
        namespace = self.fresh()
        assert tag(self.register(namespace, config={CAPABLE: boolean(True), **config})) == "Ok"
        self.publish_many(namespace, 1, 2)
        return namespace

    def followed(self, **more: object) -> tuple[str, int]:
        """Return a publication and a new subscriber's subscription to it, which is stopped."""
        namespace = self.feed()
        self.subscriber = client_principal("test", namespace)
        result = self.subscribe(namespace, NOWHERE, caller=self.subscriber, **{"stopped": True, **more})
        assert tag(result) == "Ok"
        assert isinstance(result.value, int)
        return namespace, result.value

    def registered(self, *items: Mapping[str, object], caller: bytes = ALICE) -> list[str]:
        return [tag(it) for it in self.ask(caller, ORCHESTRATOR, "icrc72_register_publication", list(items))]

    def published(self, *events: Mapping[str, object], caller: bytes = ALICE) -> list[str]:
        return [tag(it) for it in self.publish(*events, caller=caller)]

    def subscribed(self, namespace: str, *, caller: bytes = BOB, **more: object) -> str:
        return tag(self.subscribe(namespace, NOWHERE, caller=caller, **{"stopped": True, **more}))

    def configured(self, config: Mapping[str, Icrc16]) -> str:
        """Subscribe with keys of the configuration."""
        asked = registration(self.feed(), filter=None, skip=None, stopped=None)
        keys = {SUBSCRIBER_URL: text(NOWHERE), **config}
        (result,) = self.ask(
            self.subscriber, ORCHESTRATOR, "icrc72_register_subscription", [asked | {"config": pairs_of(keys.items())}]
        )
        return self.shown(result.value) if tag(result) == "Ok" else tag(result)

    def shown(self, number: int) -> Any:
        """Return filter, skip and state of a subscription."""
        (found,) = self.ask(self.subscriber, ORCHESTRATOR, "icrc72_get_subscription", [number])
        skip = found["skip"] and (found["skip"][0], found["skip"][1])
        return found["filter"], skip, found["stopped"]

    def updated(self, number: int, *, caller: bytes | None = None, **change: object) -> Any:
        """Return the error of an update, or what is shown after it."""
        fields = ("subscription", "newConfig", "config", "newFilter", "newSkip", "newStopped", "memo")
        item = dict.fromkeys(fields) | {"subscriptionId": number} | change
        (result,) = self.ask(caller or self.subscriber, ORCHESTRATOR, "icrc72_update_subscription", [item])
        return self.shown(number) if tag(result) == "Ok" else tag(result)

    def page(self, method: str, caller: bytes = BOB, **asked: object) -> list[Any]:
        found: list[Any] = self.ask(caller, ORCHESTRATOR, f"icrc72_get_{method}", PAGE | asked)
        return found

    def confirmed(self, *ids: int) -> Any:
        return self.ask(BOB, BROADCASTER, "icrc72_confirm_messages", list(ids))

    def replayed(self, namespace: str, *rest: Any, **config: Icrc16) -> str:
        return tag(self.replay(namespace, *rest, caller=self.subscriber, config=config))

    def canceled(self, number: int, caller: bytes) -> str:
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc77_cancel_replay", [number])
        return tag(result)

    def reported(self, number: int, caller: bytes) -> str:
        update = {"replayId": number, "status": Variant("running"), "stats": None}
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc77_replay_status", [update])
        return tag(result)


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    with rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:
        yield Office(chains)


def listed(it: Office, role: str, list_name: str, *principals: bytes) -> str:
    """Return a publication with a list."""
    return it.feed(**{list_name.format(role): array(*map(blob, principals))})


def twice(it: Office, change: dict[str, object]) -> list[str]:
    """Publish an event, and it again with a change."""
    namespace = it.fresh()
    it.register(namespace)
    return it.published(event(1, namespace), event(1, namespace) | change)


def once_registered(it: Office) -> tuple[str, str, bool]:
    namespace = it.fresh()
    first, second = it.register(namespace), it.register(namespace)
    return tag(first), tag(second), second.value == first.value


def others_update(it: Office) -> str:
    item = dict.fromkeys(("publicationId", "publication", "memo")) | {"namespace": it.feed(), "config": []}
    (result,) = it.ask(CAROL, ORCHESTRATOR, "icrc72_update_publication", [item])
    return tag(result)


def statistics(it: Office, names: Sequence[str] | None) -> list[str]:
    namespace = it.feed()
    wanted = None if names is None else Present(list(names))
    (found,) = [each for each in it.page("publications", statsFilter=wanted) if each["namespace"] == namespace]
    return [name for name, _ in headers_of(found["stats"])]


def own_and_others(it: Office) -> list[int]:
    """Return how many keys of a replay's configuration its requester and another are shown."""
    namespace, _ = it.followed()
    number = it.replay(namespace, caller=it.subscriber, config={"filter": text("a == 1")}).value
    page = {"prev": None, "prevId": None, "take": None, "filter": Variant("ByReplayId", number)}
    shown = [it.ask(caller, ORCHESTRATOR, "icrc77_get_replays", page) for caller in (it.subscriber, CAROL)]
    return [len(found["config"]) for (found,) in shown]


def with_replay(it: Office, work: Callable[[Any], object]) -> object:
    namespace, _ = it.followed()
    return work(it.replay(namespace, caller=it.subscriber).value)


LONG = bytes(33)
COUNTS = [f"icrc72:publication:stats:{it}" for it in (
    "publishers", "events", "events:sent", "notifications", "confirmations")]  # fmt: skip
Row = tuple[str, str, Callable[[Office], object], object]
ROWS: list[Row] = [
    ("Event Identifiers", "natural numbers without end", lambda it: it.published(event(1 << 300, it.feed())), ["Ok"]),
    ("Event Identifiers", "an event may name the one before",
     lambda it: it.published(event(3, it.feed()) | {"prev_id": 2}), ["Ok"]),
    ("Namespaces", "those of the standards belong to nobody",
     lambda it: it.registered(registration("icrc72:publisher:sys:x")), ["UnauthorizedPublisher"]),
    ("Namespaces", "one is not empty", lambda it: it.registered(registration("")), ["ImproperConfig"]),
    ("Event Headers", "those of broadcasters are theirs", lambda it: it.published(
        event(9, it.feed()) | {"headers": pairs_of([("icrc72:broadcaster:sent", nat(1))])}), ["GenericError"]),
    ("Publications Configs", "allowed publishers",
     lambda it: it.published(event(9, listed(it, "publishers", ALLOWED, ALICE)), caller=CAROL), ["Unauthorized"]),
    ("Publications Configs", "disallowed subscribers",
     lambda it: it.subscribed(listed(it, "subscribers", DISALLOWED, BOB)), "UnauthorizedSubscriber"),
    ("Publications Configs", "allowed subscribers",
     lambda it: [it.subscribed(listed(it, "subscribers", ALLOWED, who)) for who in (BOB, CAROL)],
     ["Ok", "UnauthorizedSubscriber"]),
    ("Publications Configs", "a list is an Array of Blobs",
     lambda it: tag(it.register(it.fresh(), config={ALLOWED.format("publishers"): text("x")})), "ImproperConfig"),
    ("Subscription Configs", "skip", lambda it: it.configured({SKIP: nat(3)}), (None, (3, None), False)),
    ("Subscription Configs", "filter", lambda it: it.configured({FILTER: text("a == 1")}), ("a == 1", None, False)),
    ("Subscription Configs", "stopped", lambda it: it.configured({STOPPED: boolean(True)}), (None, None, True)),
    ("Subscription Configs", "skip is no Text", lambda it: it.configured({SKIP: text("x")}), "ImproperConfig"),
    ("Subscription Configs", "filter is Text", lambda it: it.configured({FILTER: nat(1)}), "ImproperConfig"),
    ("Subscription Configs", "stopped is Bool", lambda it: it.configured({STOPPED: text("x")}), "ImproperConfig"),
    ("Statistics", "those of the text", lambda it: set(COUNTS) <= set(statistics(it, None)), True),
    ("Statistics", "the named ones", lambda it: statistics(it, COUNTS[1:2]), COUNTS[1:2]),
    ("Subscription Namespaces", "wildcards", lambda it: it.subscribed(f"*.{it.fresh()}"), "Ok"),
    ("Filtering records", "a filter is shown", lambda it: it.shown(it.followed(filter="x > 2")[1]),
     ("x > 2", None, True)),
    ("Filtering records", "one that cannot be read", lambda it: it.subscribed(it.feed(), filter="(("),
     "ImproperConfig"),
    ("Skipping records", "every second one", lambda it: it.shown(it.followed(skip={0: 2, 1: 1})[1]),
     (None, (2, 1), True)),
    ("Skipping records", "no modulus of 0", lambda it: it.subscribed(it.feed(), skip={0: 0, 1: None}),
     "ImproperConfig"),
    ("SubscriptionUpdate", "a filter replaces", lambda it: it.updated(it.followed(filter="a")[1], newFilter="b"),
     ("b", None, True)),
    ("SubscriptionUpdate", "an empty one clears", lambda it: it.updated(it.followed(filter="a")[1], newFilter=""),
     (None, None, True)),
    ("SubscriptionUpdate", "a skip replaces",
     lambda it: it.updated(it.followed()[1], newSkip=Present({0: 5, 1: None})), (None, (5, None), True)),
    ("SubscriptionUpdate", "null clears it",
     lambda it: it.updated(it.followed(skip={0: 2, 1: None})[1], newSkip=Present(None)), (None, None, True)),
    ("SubscriptionUpdate", "it stops and starts", lambda it: it.updated(it.followed()[1], newStopped=False),
     (None, None, False)),
    ("SubscriptionUpdate", "an unknown one", lambda it: it.updated(10**9, newStopped=True), "NotFound"),
    ("SubscriptionUpdate", "that of another",
     lambda it: it.updated(it.followed()[1], caller=CAROL, newStopped=False), "Unauthorized"),
    ("register_publication", "once", once_registered, ("Ok", "Ok", True)),
    ("register_publication", "a result for each, in order",
     lambda it: it.registered(registration(it.fresh()), registration(""), registration(it.fresh())),
     ["Ok", "ImproperConfig", "Ok"]),
    ("register_publication", "a memo has 32 bytes",
     lambda it: it.registered(registration(it.fresh()) | {"memo": LONG}), ["GenericError"]),
    ("register_subscription", "an unknown publication", lambda it: it.subscribed(it.fresh()), "PublicationNotFound"),
    ("update_publication", "an unknown one", lambda it: tag(it.configure(it.fresh(), {})), "NotFound"),
    ("update_publication", "that of another", others_update, "Unauthorized"),
    ("get_publications", "at most so many", lambda it: len(it.page("publications", take=1)), 1),
    ("get_publications", "behind the last page", lambda it: it.feed() in {
        each["namespace"] for each in it.page("publications", prev=it.page("publications", take=1)[0]["namespace"])},
     True),
    ("get_publication_publishers", "those of a namespace",
     lambda it: [each["publisher"] for each in it.page("publication_publishers", namespace=it.feed())],
     [Principal(ALICE)]),
    ("get_subscriptions", "those of a namespace",
     lambda it: len(it.page("subscriptions", namespace=it.followed()[0])),
     1),
    ("get_subscription", "null for an unknown one",
     lambda it: [each and each["namespace"] for each in it.ask(
         BOB, ORCHESTRATOR, "icrc72_get_subscription", [10**9])], [None]),
    ("get_broadcasters", "all", lambda it: [each["broadcaster"] for each in it.page("broadcasters")],
     [Principal(BROADCASTER)]),
    ("publish", "an unknown namespace", lambda it: it.published(event(1, it.fresh())), ["PublicationNotFound"]),
    ("publish", "of another", lambda it: it.published(event(9, it.feed()), caller=CAROL), ["Unauthorized"]),
    ("publish", "a source is the caller",
     lambda it: it.published(event(9, it.feed()) | {"source": Principal(CAROL)}), ["Unauthorized"]),
    ("publish", "the same again", lambda it: twice(it, {}), ["Ok", "Ok"]),
    ("publish", "other data by the same id", lambda it: twice(it, {"data": Variant("Nat", 2)}), ["Ok", "ImproperId"]),
    ("confirm_messages", "none", lambda it: it.confirmed(), Variant("allAccepted")),
    ("confirm_messages", "an unknown one", lambda it: [tag(each) for each in it.confirmed(10**9).value],
     ["NotFound"]),
    ("is_authorized_publisher", "a Bool for each", lambda it: it.ask(
        BOB, ORCHESTRATOR, "icrc72_is_authorized_publisher",
        [{"namespace": name, "principal": Principal(who)} for name in [it.feed()] for who in (ALICE, CAROL)]),
     [True, False]),
    ("Ingress methods", "no call without a caller",
     lambda it: call(it.url, ORCHESTRATOR, "icrc72_register_publication", [registration(it.fresh())])[0], 403),
    ("77: Authorization", "a subscriber", lambda it: it.replayed(it.followed()[0]), "Ok"),
    ("77: Authorization", "and nobody else", lambda it: it.replayed(it.feed()), "UnauthorizedSubscriber"),
    ("77: range", "the beginning is no end", lambda it: it.replayed(it.followed()[0], 2, 2), "Ok"),
    ("77: range", "nor behind it", lambda it: it.replayed(it.followed()[0], 2, 1), "ImproperConfig"),
    ("77: Filters and Skip", "a filter that cannot be read",
     lambda it: it.replayed(it.followed()[0], filter=text("((")), "ImproperConfig"),
    ("77: Filters and Skip", "a filter that is no Text",
     lambda it: it.replayed(it.followed()[0], filter=nat(1)), "ImproperConfig"),
    ("77: Filters and Skip", "a modulus of 0", lambda it: it.replayed(it.followed()[0], skip=array(nat(0))),
     "ImproperConfig"),
    ("77: Filters and Skip", "both", lambda it: it.replayed(
        it.followed()[0], filter=text("a == 1"), skip=array(nat(2), nat(1))), "Ok"),
    ("77: Error Handling", "an unknown publication", lambda it: it.replayed(it.fresh()), "PublicationNotFound"),
    ("77: cancel_replay", "an unknown one", lambda it: it.canceled(10**9, BOB), "NotFound"),
    ("77: cancel_replay", "that of another", lambda it: with_replay(it, lambda number: it.canceled(number, CAROL)),
     "Unauthorized"),
    ("77: replay_status", "an unknown one", lambda it: it.reported(10**9, ALICE), "NotFound"),
    ("77: replay_status", "by another", lambda it: with_replay(it, lambda number: it.reported(number, CAROL)),
     "Unauthorized"),
    ("77: get_replays", "configurations are of those concerned", own_and_others, [1, 0]),
]  # fmt: skip


@pytest.mark.matrix(
    "ICRC72-01", "ICRC72-05", "ICRC72-17", "ICRC72-35", "ICRC72-36", "ICRC72-40", "ICRC72-43", "ICRC72-46",
    "ICRC72-50", "ICRC72-53", "ICRC72-54", "ICRC72-55", "ICRC72-56", "ICRC72-60", "ICRC72-61", "ICRC72-63", "ICRC72-64",
    "ICRC72-65", "ICRC72-70", "ICRC72-76", "ICRC72-78", "ICRC72-79", "ICRC72-82", "ICRC72-92", "ICRC72-94",
    "ICRC72-101", "ICRC72-108", "ICRC77-02", "ICRC77-03", "ICRC77-20", "ICRC77-23", "ICRC77-27", "ICRC77-32",
    "ICRC77-56",
)  # fmt: skip
@pytest.mark.parametrize(("section", "statement", "ask", "expected"), ROWS, ids=[f"{it[0]}: {it[1]}" for it in ROWS])
def test_the_canisters_do_as_the_texts_say(
    office: Office, section: str, statement: str, ask: Callable[[Office], object], expected: object
) -> None:
    assert ask(office) == expected, f"{section}: {statement}"
