"""Who may publish, subscribe and replay, by the lists of a publication: over HTTP."""

from collections.abc import Iterator

import pytest

import relaycast as rc
from app.icrc_wire import Served, WireSubscriber, aside, attended, until
from app.served_canisters import ALICE, BOB, event
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.names import SUBSCRIBER_URL
from relaycast_gateway.icrc.orchestrator.access_lists import Icrc75Lists
from relaycast_gateway.icrc16 import NOTHING, array, blob, text
from relaycast_gateway.principal import client_principal

PUBLISHERS, SUBSCRIBERS = "icrc72:publication:publishers:", "icrc72:publication:subscribers:"
CAROL, DAVE, LISTS = (client_principal("test", name) for name in ("carol", "dave", "lists"))
UNAUTHORIZED = Variant("Err", Variant("Unauthorized"))


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:
        yield chains


def lists_of(served: Served) -> Icrc75Lists:
    assert served.gateway.icrc is not None
    return served.gateway.icrc.orchestrator.lists


@pytest.mark.matrix("ICRC72-40", "ICRC72-41")
def test_lists_of_publishers_say_who_joins_and_publishes(oracle: ServedNetwork) -> None:
    served, namespace = Served(oracle), "com.example.publishers"
    assert served.register(namespace, config={f"{PUBLISHERS}allowed:list": array(blob(ALICE), blob(CAROL))}).tag == "Ok"
    assert served.register(namespace, caller=CAROL).tag == "Ok"
    assert served.register(namespace, caller=DAVE) == UNAUTHORIZED
    assert served.publish(event(1, namespace), caller=CAROL) == [Variant("Ok", [])]
    assert served.publish(event(2, namespace), caller=DAVE) == [UNAUTHORIZED]
    assert (
        served.configure(namespace, {f"{PUBLISHERS}disallowed:list": array(blob(CAROL))}, caller=CAROL) == UNAUTHORIZED
    )
    assert served.configure(namespace, {f"{PUBLISHERS}disallowed:list": array(blob(CAROL))}) == Variant("Ok", True)
    assert served.publish(event(3, namespace), caller=CAROL) == [UNAUTHORIZED]  # though she is allowed, too
    assert served.configure(namespace, {f"{PUBLISHERS}disallowed:list": NOTHING}) == Variant("Ok", True)
    assert served.publish(event(4, namespace), caller=CAROL) == [Variant("Ok", [])]
    assert served.gateway.log.count(namespace) == 2


@pytest.mark.matrix("ICRC72-42")
def test_lists_of_other_canisters_are_asked_at_each_publish(oracle: ServedNetwork) -> None:
    served, namespace = Served(oracle), "com.example.listed.publishers"
    lists, may, may_not = lists_of(served), (LISTS, "may"), (LISTS, "may-not")
    config = {
        f"{PUBLISHERS}allowed:icrc75": array(blob(LISTS), text("may")),
        f"{PUBLISHERS}disallowed:icrc75": array(blob(LISTS), text("may-not")),
        f"{PUBLISHERS}allowed:list": array(blob(ALICE)),
    }
    assert served.register(namespace, config=config).tag == "Ok"
    assert served.register(namespace, caller=CAROL) == UNAUTHORIZED
    oracle._in_loop(lambda: lists.add(*may, CAROL))
    assert served.register(namespace, caller=CAROL).tag == "Ok"
    assert served.publish(event(1, namespace), caller=CAROL) == [Variant("Ok", [])]
    oracle._in_loop(lambda: lists.add(*may_not, CAROL))
    assert served.publish(event(2, namespace), caller=CAROL) == [UNAUTHORIZED]
    oracle._in_loop(lambda: lists.remove(*may_not, CAROL))
    assert served.publish(event(3, namespace), caller=CAROL) == [Variant("Ok", [])]
    oracle._in_loop(lambda: lists.remove(*may, CAROL))
    assert served.publish(event(4, namespace), caller=CAROL) == [UNAUTHORIZED]


@pytest.mark.matrix("ICRC72-43", "ICRC72-44")
@pytest.mark.parametrize("is_external", [False, True])
def test_lists_of_subscribers_hold_at_registration_and_at_delivery(oracle: ServedNetwork, is_external: bool) -> None:
    namespace = f"com.example.subscribers.{str(is_external).lower()}"
    refused = Variant("Err", Variant("UnauthorizedSubscriber", {"namespace": namespace}))

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        lists = lists_of(served)

        def permit(kind: str, *, is_on: bool) -> None:
            """Put the subscriber on the list of allowed or disallowed ones, or take it off."""
            if is_external:
                change = lists.add if is_on else lists.remove
                oracle._in_loop(lambda: change(LISTS, f"{namespace} {kind}", BOB))
            else:
                value = array(blob(BOB)) if is_on else array() if kind == "allowed" else NOTHING
                assert served.configure(namespace, {f"{SUBSCRIBERS}{kind}:list": value}).tag == "Ok"

        ends = ("allowed", "disallowed")
        names = {f"{SUBSCRIBERS}{it}:icrc75": array(blob(LISTS), text(f"{namespace} {it}")) for it in ends}
        config = names if is_external else {f"{SUBSCRIBERS}allowed:list": array()}
        assert (await aside(served.register, namespace, config=config)).tag == "Ok"
        assert await aside(served.subscribe, namespace, host.url) == refused
        await aside(permit, "allowed", is_on=True)
        assert (await aside(served.subscribe, namespace, host.url)).tag == "Ok"
        await aside(served.publish_many, namespace, 1)
        await until(lambda: subscriber.events == [1])
        await aside(permit, "disallowed", is_on=True)
        await aside(served.publish_many, namespace, 2)
        assert await aside(served.replay, namespace) == refused
        await aside(permit, "disallowed", is_on=False)
        await aside(served.publish_many, namespace, 3)
        await until(lambda: subscriber.events == [1, 3])
        await aside(permit, "allowed", is_on=False)
        await aside(served.publish_many, namespace, 4)
        await aside(permit, "allowed", is_on=True)
        await aside(served.publish_many, namespace, 5)
        await until(lambda: subscriber.events == [1, 3, 5])

    attended(oracle, work)


@pytest.mark.matrix("ICRC77-24")
def test_a_requester_on_the_list_needs_no_subscription_and_a_disallowed_one_is_refused(oracle: ServedNetwork) -> None:
    namespace = "com.example.requesters"
    refused = Variant("Err", Variant("UnauthorizedSubscriber", {"namespace": namespace}))

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        place = {SUBSCRIBER_URL: text(host.url)}
        await aside(served.register, namespace)
        await aside(served.publish_many, namespace, 1, 2)
        assert await aside(served.replay, namespace, config=place) == refused  # neither subscribed nor listed
        assert (await aside(served.configure, namespace, {f"{SUBSCRIBERS}allowed:list": array(blob(BOB))})).tag == "Ok"
        assert (await aside(served.replay, namespace, config=place)).tag == "Ok"
        await until(lambda: subscriber.events == [1, 2])
        await aside(served.configure, namespace, {f"{SUBSCRIBERS}disallowed:list": array(blob(BOB))})
        assert await aside(served.replay, namespace, config=place) == refused

    attended(oracle, work)
