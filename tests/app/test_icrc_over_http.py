"""What publishers and subscribers of ICRC-72 and ICRC-77 get to see over HTTP: ids, errors, refusals, replays."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import relaycast as rc
from app.icrc_wire import Served, WireSubscriber, aside, attended, until
from app.served_canisters import ALICE, BOB, as_, ask, call, event, registration, subscription
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.candid import Present, Principal, Variant, encode
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.names import CAPABLE, HASH, REPLAY_ID, SUBSCRIBER_URL, TRUSTED
from relaycast_gateway.icrc.system_messages import SUBSCRIBER_REMOVE, SystemItem
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, blob, boolean, nat, text
from relaycast_gateway.icrc_face import BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import client_principal, principal_text
from relaycast_gateway.record import EventDraft


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:
        yield chains


@pytest.fixture
def served(oracle: ServedNetwork) -> Served:
    return Served(oracle)


# Ids


@pytest.mark.matrix("ICRC72-12", "ICRC77-22")
def test_ids_of_notifications_replays_and_system_messages_are_one_sequence_over_restarts(tmp_path: Path) -> None:
    namespace, got = "com.example.ids", list[dict[str, Any]]()

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        change = {"newConfig": pairs_of([(SUBSCRIBER_URL, text(host.url))])}
        if (await aside(served.register, namespace)).tag == "Ok" and not got:
            await aside(served.subscribe, namespace, host.url)
        else:
            fields = ("subscriptionId", "config", "newFilter", "newSkip", "newStopped", "memo")
            item = dict.fromkeys(fields) | change | {"subscription": Variant("namespace", namespace)}
            (result,) = await aside(served.ask, BOB, ORCHESTRATOR, "icrc72_update_subscription", [item])
            assert result.tag == "Ok"
        number = 10 * len(got)
        await aside(served.publish_many, namespace, number + 1, number + 2)
        await until(lambda: len(subscriber.events) == 2)
        for _ in range(2):
            replay_id = (await aside(served.replay, namespace)).value
            await until(partial(subscriber.has_heard, SystemItem(SUBSCRIBER_REMOVE, replay_id)))
        got.extend(subscriber.messages)

    for _ in range(2):
        with rc.serve("oracle", data=tmp_path / "kept", allow_sink=["127.0.0.1"]) as chains:
            attended(chains, work)
    ids = [it["id"] for it in got]
    assert ids == sorted(set(ids))
    told = [it["eventId"] for it in got if it["namespace"].startswith("icrc72:subscriber:sys:")]
    assert len(told) == len(set(told)) == 8


# Answers


@pytest.mark.matrix("ICRC72-88")
@pytest.mark.parametrize(
    ("types", "answer", "confirmations"),
    [
        ("(variant {Ok : opt nat; err : text})", Variant("err", "no room"), 0),
        ("(variant {Ok : opt nat; Err : text})", Variant("Err", "no room"), 0),
        ("(variant {err : text})", Variant("err", "no room"), 0),
        ("(variant {Ok : variant {Nat : nat}; err : text})", Variant("Ok", Variant("Nat", 7)), 1),
        ("(variant {Ok : opt variant {Text : text}})", Variant("Ok", None), 1),
        ("(variant {Ok})", Variant("Ok"), 1),
    ],
)
def test_a_trusted_answer_is_understood_however_the_texts_spell_it(
    oracle: ServedNetwork, types: str, answer: Variant, confirmations: int
) -> None:
    served, namespace = Served(oracle), f"com.example.trusted.n{encode(types, [answer]).hex()}"
    caller, called = client_principal("test", namespace), list[str]()
    served.register(namespace)
    before = served.broadcaster_stats()

    async def handle(request: web.Request) -> web.Response:
        called.append(request.match_info["method"])
        return web.Response(body=encode(types, [answer]), content_type="application/candid")

    async def run() -> None:
        application = web.Application()
        application.router.add_post("/icrc/{principal}/{method}", handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        config = pairs_of([(SUBSCRIBER_URL, text(f"http://127.0.0.1:{port}")), (TRUSTED, boolean(True))])
        asked = subscription(namespace, "http://127.0.0.1:1") | {"config": config}
        (result,) = await aside(served.ask, caller, ORCHESTRATOR, "icrc72_register_subscription", [asked])
        assert result.tag == "Ok"
        await aside(served.publish_many, namespace, 1)
        await until(lambda: served.broadcaster_stats()["notifications"] > before["notifications"])
        await runner.cleanup()

    asyncio.run(run())
    assert called == ["icrc72_handle_notification_trusted"]
    after = served.broadcaster_stats()
    assert after["confirmations"] - before["confirmations"] == confirmations
    assert after["errors"] - before["errors"] == 1 - confirmations


# Hashes


@pytest.mark.matrix("ICRC72-22")
def test_a_hash_that_is_not_that_of_the_data_is_refused_at_publish(served: Served) -> None:
    namespace = "com.example.hashed"
    served.register(namespace)
    right = blob(eventdata_hash(nat(1)))
    wrong: dict[str, tuple[Icrc16, ...]] = {
        "expected Blob, got Text": (text(eventdata_hash(nat(1)).hex()),),
        "the hash of data, got 0000": (blob(bytes(32)),),
        "the hash of data, got no bytes": (blob(b""),),
        "the hash of data, got ffff": (right, blob(b"\xff" * 32)),
    }
    events = [
        event(1, namespace) | {"headers": pairs_of([(HASH, it) for it in given])}
        for given in (*wrong.values(), (right,))
    ]
    *refused, taken = served.publish(*events)
    for said, result in zip(wrong, refused, strict=True):
        assert (result.tag, result.value.tag) == ("Err", "GenericError")
        message = result.value.value["message"]
        assert message.startswith(f"headers: {HASH}: ")
        assert said in message
    assert taken == Variant("Ok", [])
    assert served.gateway.log.count(namespace) == 1


@pytest.mark.matrix("ICRC77-46")
def test_a_record_that_does_not_verify_is_left_out_of_a_replay_and_counted(oracle: ServedNetwork) -> None:
    namespace = "com.example.damaged"

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.publish_many, namespace, 1, 2)
        bad = EventDraft(namespace, nat(3), ALICE, 1, event_id=3, headers=((HASH, blob(bytes(32))),))
        await aside(served.gateway.log.append, bad)
        await aside(served.publish_many, namespace, 4)
        await aside(served.subscribe, namespace, host.url)
        replay_id = (await aside(served.replay, namespace)).value
        await until(lambda: SUBSCRIBER_REMOVE in {it.key for it in subscriber.heard()})
        assert subscriber.events == [1, 2, 4]
        state, stats = await aside(served.status, replay_id)
        assert state == Variant("completed", 3)
        assert (stats["sent"], stats["skipped"]) == (3, 1)

    attended(oracle, work)


# Refusals


def test_refusals_of_events_name_the_fields_of_the_text(served: Served) -> None:
    namespace = "com.example.named"
    served.register(namespace)
    deep = Variant("Nat", 1)
    for _ in range(64):
        deep = Variant("Array", [deep])
    wrong: dict[str, dict[str, object]] = {
        "timestamp: got 9223372036854775808, ": {"timestamp": 1 << 63},
        "timestamp: got a number of 20001 bits, ": {"timestamp": 1 << 20_000},
        "data: expected values at most 64 deep": {"data": deep},
        "headers: expected values at most 64 deep": {"headers": [{0: "deep", 1: deep}]},
        "prev_id and prevId: ": {"prev_id": 1, "prevId": 2},
    }
    for result, said in zip(served.publish(*(event(1, namespace) | it for it in wrong.values())), wrong, strict=True):
        assert result.value.value["message"].startswith(said), result


@pytest.mark.matrix("ICRC72-35", "ICRC77-32")
@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("garbage((", 8),
        ("price >= ?", 10),
        ("price == 1 | {a} == b", 14),
        ("'price' == 1", 1),
        ("a = b", 2),
    ],
)
def test_a_filter_that_can_never_match_is_refused_with_its_place(oracle: ServedNetwork, said: str, place: int) -> None:
    namespace = "com.example.filtered"

    async def work(served: Served, host: CanisterHost, _: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.subscribe, namespace, host.url)
        before = served.gateway.icrc.store.dump()  # type: ignore[union-attr]
        fields = ("subscription", "newConfig", "config", "newSkip", "newStopped", "memo", "subscriptionId")
        update = dict.fromkeys(fields) | {"subscription": Variant("namespace", namespace), "newFilter": said}
        registered = await aside(served.subscribe, "com.example.*", host.url, filter=said)
        (updated,) = await aside(served.ask, BOB, ORCHESTRATOR, "icrc72_update_subscription", [update])
        replayed = await aside(served.replay, namespace, config={"filter": text(said)})
        for result in (registered, updated, replayed):
            assert result.value.tag == "ImproperConfig", result
            assert f"character {place}: expected" in result.value.value
        status, problem = await aside(
            call,
            served.url,
            ORCHESTRATOR,
            "icrc77_request_messages",
            [{"namespace": namespace, "range": {0: 0, 1: None}, "filter": said, "skip": None}],
            **as_(BOB),
        )
        assert status == 422
        assert f"character {place}: expected" in problem["detail"]
        assert served.gateway.icrc.store.dump() == before  # type: ignore[union-attr]

    attended(oracle, work)


@pytest.mark.parametrize(
    ("method", "types", "value", "field"),
    [
        ("icrc72_get_publishers", "(record {statsFilter : text})", {"statsFilter": "events"}, "statsFilter"),
        ("icrc72_get_publications", "(record {statsFilter : opt nat})", {"statsFilter": 7}, "statsFilter"),
        (
            "icrc72_get_subscribers",
            "(record {statsFilter : opt opt vec nat})",
            {"statsFilter": Present([7])},
            "statsFilter",
        ),
        ("icrc72_get_subscriptions", "(record {take : opt text})", {"take": "9"}, "take"),
        ("icrc72_get_subscriptions", "(record {prev : opt principal})", {"prev": None}, None),
        ("icrc72_get_broadcasters", "(record {statsFilter : opt opt vec text})", {"statsFilter": None}, None),
        ("icrc72_get_broadcasters", "(record {statsFilter : opt vec text})", {"statsFilter": ["events"]}, None),
        (
            "icrc72_get_broadcasters",
            "(record {statsFilter : null; more : text})",
            {"statsFilter": None, "more": "x"},
            None,
        ),
        ("icrc77_get_replays", "(record {prev : opt nat})", {"prev": 7}, "prev"),
    ],
)
def test_an_optional_argument_of_another_type_is_refused_by_its_name(
    served: Served, method: str, types: str, value: object, field: str | None
) -> None:
    status, said = served.refusal(BOB, ORCHESTRATOR, method, types, value)
    if field is None:
        assert status == 200, said
    else:
        assert status == 400
        assert f"the argument of {method}: {field}, " in said


def test_what_is_not_there_is_named_by_kind_and_id(served: Served) -> None:
    someone = client_principal("test", "nobody")
    nobody = principal_text(someone)
    namespace = "com.example.absent"
    served.register(namespace)
    page = {"prev": None, "take": None, "statsFilter": None}
    for method, argument, said in (
        ("icrc72_get_publishers", page | {"prev": Principal(someone)}, f"there is no publisher {nobody}"),
        ("icrc72_get_subscribers", page | {"prev": Principal(someone)}, f"there is no subscriber {nobody}"),
        ("icrc72_get_broadcasters", page | {"prev": Principal(someone)}, f"there is no broadcaster {nobody}"),
        ("icrc72_get_publications", page | {"prev": "com.example.no"}, "there is no publication 'com.example.no'"),
        ("icrc72_get_subscriptions", page | {"prev": 999, "namespace": None}, "there is no subscription 999"),
        (
            "icrc72_get_broadcaster_subscriptions",
            page | {"prevId": 999, "broadcaster": None},
            "there is no subscription 999",
        ),
        (
            "icrc77_get_replays",
            {"prev": None, "prevId": 999, "take": None, "filter": None},
            "there is no replay 999",
        ),
    ):
        status, problem = call(served.url, ORCHESTRATOR, method, argument, **as_(BOB))
        assert status == 422, method
        assert said in problem["detail"]
    for path, said in (
        (f"{nobody}/candid", f"no canister {nobody}"),
        (f"{principal_text(BROADCASTER)}/x", "no method 'x'"),
    ):
        status, _, answer = ask(f"{served.url}/icrc/{path}", *(("POST", b"") if path.endswith("x") else ()))
        assert status == 404
        assert said in answer.decode()
    headers = pairs_of([(REPLAY_ID, nat(77))])
    (result,) = served.publish(event(5, namespace) | {"headers": headers})
    assert result.value.tag == "ImproperId"
    assert result.value.value == f"{REPLAY_ID}: expected a replay of {namespace} that the caller serves, got 77"


# Replays


def test_a_replay_without_a_place_to_deliver_to_is_refused_and_one_with_a_place_of_its_own_is_sent(
    oracle: ServedNetwork,
) -> None:
    namespace, carol = "com.example.placeless", client_principal("test", "carol")

    async def work(served: Served, host: CanisterHost, _: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.publish_many, namespace, 1, 2, 3)
        asked = registration(namespace, filter=None, skip=None, stopped=None)
        (result,) = await aside(served.ask, carol, ORCHESTRATOR, "icrc72_register_subscription", [asked])
        assert result.tag == "Ok"
        refused = await aside(served.replay, namespace, caller=carol)
        assert refused.value.tag == "ImproperConfig"
        assert SUBSCRIBER_URL in refused.value.value
        elsewhere = await aside(
            served.replay, namespace, caller=carol, config={SUBSCRIBER_URL: text("http://192.0.2.1")}
        )
        assert elsewhere.value.tag == "ImproperConfig"
        subscriber = WireSubscriber(carol, host.wire)
        host.add(subscriber)
        begun = await aside(served.replay, namespace, caller=carol, config={SUBSCRIBER_URL: text(host.url)})
        assert begun.tag == "Ok"
        await until(lambda: subscriber.events == [1, 2, 3])

    attended(oracle, work)


@pytest.mark.matrix("ICRC77-39", "ICRC77-40")
def test_a_canceled_replay_counts_what_was_sent(oracle: ServedNetwork) -> None:
    namespace = "com.example.canceled"

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.publish_many, namespace, *range(1, 601))  # more than a broadcaster lets wait
        await aside(served.subscribe, namespace, host.url)
        subscriber.holds_back = True
        replay_id = (await aside(served.replay, namespace)).value
        await until(lambda: subscriber.held)
        while not subscriber.events:  # the first call told of the replay
            subscriber.held.pop(0).settle(None)
            await until(lambda: subscriber.held)
        (canceled,) = await aside(served.ask, BOB, ORCHESTRATOR, "icrc77_cancel_replay", [replay_id])
        assert canceled == Variant("Ok", replay_id)
        subscriber.holds_back = False
        for it in subscriber.held:
            it.settle(None)
        await until(lambda: SUBSCRIBER_REMOVE in {it.key for it in subscriber.heard()})
        state, stats = await aside(served.status, replay_id)
        got = len(subscriber.events)
        assert 0 < got < 600
        assert state == Variant("canceled", got)
        assert stats["sent"] == got
        (again,) = await aside(served.ask, BOB, ORCHESTRATOR, "icrc77_cancel_replay", [replay_id])
        assert again == Variant("Err", Variant("CannotCancel", "the replay is canceled"))

    attended(oracle, work)


@pytest.mark.matrix("ICRC77-39")
def test_a_publisher_reports_its_replay_in_the_spellings_of_both_texts(oracle: ServedNetwork) -> None:
    namespace = "com.example.reported"

    async def work(served: Served, host: CanisterHost, _: WireSubscriber) -> None:
        publisher = WireSubscriber(ALICE, host.wire)
        host.add(publisher)
        config = {CAPABLE: boolean(True), SUBSCRIBER_URL: text(host.url)}
        await aside(served.register, namespace, config=config)
        await aside(served.publish_many, namespace, 1, 2)
        await aside(served.subscribe, namespace, host.url)

        def reported(replay_id: int, state: str, value: object = None) -> Any:
            types = (
                f"(vec record {{replayId : nat; status : variant {{{state}{' : nat' if value is not None else ''}}}}})"
            )
            body = encode(types, [[{"replayId": replay_id, "status": Variant(state, value)}]])
            path = f"{served.url}/icrc/{principal_text(ORCHESTRATOR)}/icrc77_replay_status"
            status, _, _ = ask(path, "POST", body, Content_Type="application/candid", **as_(ALICE))
            assert status == 200
            return served.status(replay_id)[0]

        for running, completed in (("running", "completed"), ("Running", "Completed")):
            replay_id = (await aside(served.replay, namespace)).value
            assert (await aside(served.status, replay_id))[0] == Variant("pending")
            assert await aside(reported, replay_id, running) == Variant("running")
            assert await aside(reported, replay_id, completed, 2) == Variant("completed", 2)
            assert await aside(reported, replay_id, running) == Variant("completed", 2)  # it stays ended

    attended(oracle, work)


# Order


def test_events_come_in_the_order_in_which_they_were_published_whatever_their_chain_says(oracle: ServedNetwork) -> None:
    namespace = "com.example.chained"

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.subscribe, namespace, host.url)
        chain = [event(number, namespace) | {"prev_id": before} for number, before in ((1, None), (3, 2), (2, 1))]
        await aside(served.publish, *chain)
        await until(lambda: len(subscriber.events) == 3)
        assert [(it["eventId"], it["prevEventId"]) for it in subscriber.messages] == [(1, None), (3, 2), (2, 1)]

    attended(oracle, work)


# Sizes


def test_large_events_that_exceed_a_call_together_are_sent_in_smaller_calls(oracle: ServedNetwork) -> None:
    namespace = "com.example.large"

    async def work(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        await aside(served.register, namespace)
        await aside(served.subscribe, namespace, host.url)
        subscriber.holds_back = True
        await aside(served.publish_many, namespace, 1)
        await until(lambda: subscriber.held)
        for number in (2, 3, 4):  # wait while the first call is under way
            large = event(number, namespace, Variant("Blob", bytes(1_000_000)))
            assert (await aside(served.publish, large))[0].tag == "Ok"
        subscriber.holds_back = False
        subscriber.held[0].settle(None)
        await until(lambda: len(subscriber.events) == 4)
        assert subscriber.events == [1, 2, 3, 4]

    attended(oracle, work)
