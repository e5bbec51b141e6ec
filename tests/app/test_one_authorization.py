"""Restrictions hold at every face: who may publish, see, look back, replay and subscribe, over the wire, with tokens.

Ann and Uwe are on the lists of a namespace, the bearer of ``OWN`` is on none. Ann is an admin of WAMP, the others are
users.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from app.served_canisters import (
    ADMIN_TOKEN,
    FEED,
    OWN,
    OWN_TOKEN,
    USER_TOKEN,
    bearer,
    call,
    event,
    registration,
    subscription,
    until,
)
from app.test_faces_together import GET_EVENTS, webhook
from gateway.icrc.http_stage import NotingSubscriber
from relaycast.serve.access import Access, access_for
from relaycast.serve.gateway_face import icrc_settings, open_gateway, router_config
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.candid import Variant
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.names import SUBSCRIBER_URL
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import array, blob, text
from relaycast_gateway.icrc_face import BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import principal_of_name, principal_text
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.errors import WampError

OPEN = "com.example.open"
ANN, UWE = principal_of_name("ann"), principal_of_name("uwe")
TOKENS = {"ann": ADMIN_TOKEN, "uwe": USER_TOKEN, "own": OWN_TOKEN}


@pytest.fixture
def access(tmp_path: Path) -> Access:
    file = tmp_path / "tokens"
    own = f"{OWN_TOKEN} name=own principal={principal_text(OWN)} role=user"
    file.write_text(f"{ADMIN_TOKEN} name=ann\n{USER_TOKEN} name=uwe role=user\n{own}\n")
    file.chmod(0o600)
    return access_for((), (), str(file))


@contextmanager
def served(access: Access, data: str | None = None) -> Iterator[ServedNetwork]:
    network = living("oracle", "manual")
    config = router_config(None, ["com.example."], access)
    gateway = open_gateway(network, data, ["127.0.0.1"], config, icrc_settings(), access)
    with serving(network, gateway=gateway, access=access, data=data) as chains:
        yield chains


def restrict(url: str) -> None:
    """Register a namespace whose lists name Ann and Uwe, and an open one."""
    both = array(blob(ANN), blob(UWE))
    lists = [(f"icrc72:publication:{who}:allowed:list", both) for who in ("publishers", "subscribers")]
    items = [registration(FEED, config=pairs_of(lists)), registration(OPEN)]
    _, results = call(url, ORCHESTRATOR, "icrc72_register_publication", items, **bearer(ADMIN_TOKEN))
    assert [it.tag for it in results] == ["Ok", "Ok"]
    _, results = call(url, ORCHESTRATOR, "icrc72_register_publication", [registration(FEED)], **bearer(USER_TOKEN))
    assert [it.tag for it in results] == ["Ok"]


def push(url: str, token: str, sink: str) -> None:
    """Subscribe a webhook to both namespaces, from the beginning."""
    body = json.dumps({"protocol": "HTTP", "sink": sink, "types": [FEED, OPEN], "config": {"since": 1}}).encode()
    request = Request(f"{url}/subscriptions", body, {"Content-Type": "application/json", **bearer(token)})
    with urlopen(request, timeout=60) as answer:
        assert answer.status == 201


async def history(client: WampClient, subscription_id: int) -> list[Any]:
    return list((await client.call(GET_EVENTS, subscription_id)).args)


async def joined(chains: ServedNetwork, name: str) -> WampClient:
    return await WampClient.connect(chains.wamp_url, authid=name, ticket=TOKENS[name])


@pytest.mark.matrix("X-08", "ICRC72-40", "ICRC72-43", "ICRC77-24")
def test_lists_of_a_namespace_hold_at_every_face(access: Access) -> None:
    with webhook() as (uwes, came), webhook() as (owns, leaked), served(access) as chains:
        url = chains.http_url
        restrict(url)
        push(url, USER_TOKEN, uwes)
        push(url, OWN_TOKEN, owns)

        async def work() -> None:
            async with await joined(chains, "uwe") as uwe, await joined(chains, "own") as own:
                heard: dict[str, list[Any]] = {"uwe": [], "own": []}
                numbers = {
                    name: await client.subscribe("com.example.", heard[name].append, match="prefix")
                    for name, client in (("uwe", uwe), ("own", own))
                }
                with pytest.raises(WampError, match=r"not on the list of publishers"):
                    await own.publish(FEED, ["forged"])
                with pytest.raises(WampError, match=r"not on the list of subscribers"):
                    await own.subscribe(FEED, lambda _: None)
                await uwe.publish(FEED, ["secret"], exclude_me=False)
                _, (result,) = await asyncio.to_thread(
                    call, url, BROADCASTER, "icrc72_publish", [event(9, FEED)], **bearer(ADMIN_TOKEN)
                )
                assert result.tag == "Ok"
                await uwe.publish(OPEN, ["for all"], exclude_me=False)
                await until(lambda: len(heard["uwe"]) == 3 and heard["own"])
                assert [it.details["topic"] for it in heard["own"]] == [OPEN]
                histories = {
                    name: [it["details"]["topic"] for it in await history(client, numbers[name])]
                    for name, client in (("uwe", uwe), ("own", own))
                }
                assert histories == {"uwe": [FEED, FEED, OPEN], "own": [OPEN]}
                hidden = next(it for it in heard["uwe"] if it.details["topic"] == FEED).publication
                with pytest.raises(WampError, match="publication"):
                    await own.call(GET_EVENTS, numbers["own"], after_publication=hidden)
                await until(lambda: len(came) == 3 and leaked)

        asyncio.run(work())
        assert [kind for kind, _ in came] == [FEED, FEED, OPEN]
        assert [kind for kind, _ in leaked] == [OPEN]
        _, (result,) = call(url, BROADCASTER, "icrc72_publish", [event(10, FEED)], **bearer(OWN_TOKEN))
        assert result.tag == "Err"
        asked = [subscription(FEED, "http://127.0.0.1:9/")]
        _, (result,) = call(url, ORCHESTRATOR, "icrc72_register_subscription", asked, **bearer(OWN_TOKEN))
        assert result.tag == "Err"
        assert replay(url, OWN_TOKEN, FEED, "http://127.0.0.1:9/").tag == "Err"


def replay(url: str, token: str, namespace: str, place: str) -> Variant:
    """Ask for a replay of all that a namespace has had, and return the answer."""
    config = pairs_of([(SUBSCRIBER_URL, text(place))])
    asked = {"namespace": namespace, "range": {0: 0, 1: None}, "config": config, "memo": None}
    _, (result,) = call(url, ORCHESTRATOR, "icrc77_register_replay", [asked], **bearer(token))
    assert isinstance(result, Variant)
    return result


@pytest.mark.matrix("WAMP-49", "WAMP-50", "WAMP-51", "WAMP-52")
def test_an_event_with_a_list_of_receivers_is_seen_by_those_alone_live_later_and_in_a_replay(access: Access) -> None:
    with webhook() as (sink, came), served(access) as chains:
        url = chains.http_url
        push(url, ADMIN_TOKEN, sink)

        async def work() -> None:
            async with await joined(chains, "ann") as ann, await joined(chains, "uwe") as uwe:
                heard: dict[str, list[Any]] = {"ann": [], "uwe": []}
                numbers = {
                    name: await client.subscribe(OPEN, heard[name].append)
                    for name, client in (("ann", ann), ("uwe", uwe))
                }
                async with CanisterHost.connected(url, token=USER_TOKEN) as host:
                    subscriber = NotingSubscriber(host.principal, host.wire)
                    host.add(subscriber)
                    await ann.publish(OPEN, [1], eligible_authrole=["admin"], exclude_me=False)
                    await ann.publish(OPEN, [2], exclude_authid=["uwe"], exclude_authrole=["other"], exclude_me=False)
                    await ann.publish(OPEN, [3], exclude_me=False)
                    await until(lambda: len(heard["ann"]) == 3 and heard["uwe"])
                    assert [it.args for it in heard["uwe"]] == [[3]]
                    for name, client, expected in (("ann", ann, [[1], [2], [3]]), ("uwe", uwe, [[3]])):
                        assert [it["args"] for it in await history(client, numbers[name])] == expected
                    asked = [subscription(OPEN, host.url)]
                    (result,) = await host.call(
                        host.principal, host.orchestrator, "icrc72_register_subscription", asked
                    )
                    assert result.tag == "Ok"
                    accepted = await asyncio.to_thread(replay, url, USER_TOKEN, OPEN, host.url)
                    assert accepted.tag == "Ok"
                    await until(lambda: notified(subscriber))
                    assert notified(subscriber) == [3]
                    await ann.publish(OPEN, [4], eligible_authid=["ann"], exclude_me=False)
                    await ann.publish(OPEN, [5], exclude_me=False)

                    await until(lambda: len(notified(subscriber)) >= 2)
                    assert sorted(notified(subscriber)) == [3, 5]
                await until(lambda: len(came) >= 2)

        asyncio.run(work())
        assert [data for _, data in came] == [[3], [5]]


def notified(subscriber: NotingSubscriber) -> list[Any]:
    """Return what a canister was notified of in the open namespace."""
    events = (it for _, sent in subscriber.noted for it in sent if it["namespace"] == OPEN)
    return [it["data"].value[0].value for it in events]


RESERVED = ("io.relaycast.data.published", "io.relaycast.mine", "wamp.session.on_join", "icrc72:x")


@pytest.mark.parametrize("namespace", RESERVED)
def test_namespaces_of_chains_and_of_the_router_belong_to_no_client_of_any_face(access: Access, namespace: str) -> None:
    with served(access) as chains:
        asked = (chains.http_url, ORCHESTRATOR, "icrc72_register_publication", [registration(namespace)])
        _, (result,) = call(*asked, **bearer(ADMIN_TOKEN))
        assert (result.tag, result.value.tag) == ("Err", "UnauthorizedPublisher")
        _, (result,) = call(
            chains.http_url, BROADCASTER, "icrc72_publish", [event(1, namespace)], **bearer(ADMIN_TOKEN)
        )
        assert result.tag == "Err"
        if ":" in namespace:
            return

        async def publish() -> None:
            async with await joined(chains, "ann") as client:
                with pytest.raises(WampError, match="may not publish"):
                    await client.publish(namespace, ["forged"])

        asyncio.run(publish())


def test_lists_hold_where_the_face_that_made_them_is_not_offered(access: Access, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with served(access, data) as chains:
        restrict(chains.http_url)
    network = living("oracle", "manual")
    config = router_config(None, ["com.example."], access)
    gateway: Gateway = open_gateway(network, data, (), config, None, access)
    assert gateway.icrc is None
    with serving(network, gateway=gateway, access=access, data=data) as chains:

        async def publish() -> None:
            async with await joined(chains, "own") as client:
                with pytest.raises(WampError, match=r"not on the list of publishers"):
                    await client.publish(FEED, ["forged"])

        asyncio.run(publish())
