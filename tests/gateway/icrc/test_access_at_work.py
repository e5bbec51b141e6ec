"""Access lists at work: who publishes and who is notified through a broadcaster, as lists change in between."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.icrc.registry_office import PUBLISHERS, SUBSCRIBERS, principals, stats
from gateway.icrc.stage import NAMESPACE, ORCHESTRATOR, PUBLISHER, Stage
from relaycast_gateway.icrc16 import NOTHING, Icrc16, array, blob, text
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import EventDraft

OTHER, STRANGER, ANN, BOB = b"other", b"stranger", b"ann", b"bob"


def published(stage: Stage, publisher: bytes) -> str:
    """Publish an event and return ``Ok`` or the error."""
    (result,) = stage.publish(stage.event(), publisher=publisher)
    return str(result.tag if result.tag == "Ok" else result.value.tag)


def stage_with(config: Mapping[str, Icrc16]) -> Stage:
    """Return a stage with the publication of two publishers that ``config`` lets in."""
    stage = Stage()
    both = {PUBLISHERS + "allowed:list": principals(PUBLISHER, OTHER)}
    stage.register(config=both)
    stage.register(publisher=OTHER)
    stage.configure(1, dict.fromkeys(both, NOTHING) | dict(config))
    return stage


@pytest.mark.matrix("ICRC72-40")
def test_a_member_of_the_list_publishes_and_others_do_not() -> None:
    with stage_with({PUBLISHERS + "allowed:list": principals(PUBLISHER, OTHER)}) as stage:
        assert [published(stage, it) for it in (PUBLISHER, OTHER, STRANGER)] == ["Ok", "Ok", "Unauthorized"]
    with stage_with({}) as stage:  # without a list the owner alone
        assert [published(stage, it) for it in (PUBLISHER, OTHER, STRANGER)] == ["Ok", "Unauthorized", "Unauthorized"]
    with stage_with({PUBLISHERS + "allowed:list": array()}) as stage:
        assert [published(stage, it) for it in (PUBLISHER, OTHER)] == ["Unauthorized"] * 2


@pytest.mark.matrix("ICRC72-41", "ICRC72-54")
def test_an_update_of_the_lists_holds_from_the_next_event_on() -> None:
    with stage_with({PUBLISHERS + "allowed:list": principals(PUBLISHER, OTHER)}) as stage:
        assert published(stage, OTHER) == "Ok"
        stage.configure(1, {PUBLISHERS + "disallowed:list": principals(OTHER)})
        assert [published(stage, it) for it in (OTHER, PUBLISHER)] == ["Unauthorized", "Ok"]
        stage.configure(1, {PUBLISHERS + "disallowed:list": NOTHING})
        assert published(stage, OTHER) == "Ok"
        assert stage.log.last_seq == 3


@pytest.mark.matrix("ICRC72-42")
def test_a_list_of_another_canister_is_asked_for_each_event() -> None:
    rules = {
        PUBLISHERS + "allowed:icrc75": array(blob(STRANGER), text("writers")),
        PUBLISHERS + "disallowed:icrc75": array(blob(STRANGER), text("banned")),
    }
    with stage_with(rules) as stage:
        lists = stage.orchestrator.lists
        seen = [published(stage, OTHER)]
        for change, name in ((lists.add, "writers"), (lists.add, "banned"), (lists.remove, "banned")):
            change(STRANGER, name, OTHER)
            seen.append(published(stage, OTHER))
        assert seen == ["Unauthorized", "Ok", "Unauthorized", "Ok"]


@pytest.mark.matrix("ICRC72-44")
@pytest.mark.parametrize("pattern", [NAMESPACE, "com.*"])
def test_a_list_of_another_canister_is_asked_for_each_notification(pattern: str) -> None:
    rules = {
        SUBSCRIBERS + "allowed:icrc75": array(blob(STRANGER), text("readers")),
        SUBSCRIBERS + "disallowed:icrc75": array(blob(STRANGER), text("banned")),
    }
    with stage_with(rules) as stage:
        lists = stage.orchestrator.lists
        for each in (ANN, BOB):
            lists.add(STRANGER, "readers", each)
            stage.subscribe(each, pattern)
        for change, name in (
            (lists.remove, "readers"),
            (lists.add, "readers"),
            (lists.add, "banned"),
            (lists.remove, "banned"),
        ):
            assert published(stage, PUBLISHER) == "Ok"
            change(STRANGER, name, BOB)
        assert published(stage, PUBLISHER) == "Ok"
        assert stage.subscribers[ANN].event_ids == [1, 2, 3, 4, 5]
        assert stage.subscribers[BOB].event_ids == [1, 3, 5]


@pytest.mark.matrix("ICRC72-102")
def test_an_event_of_another_face_never_reaches_a_system_namespace() -> None:
    with Stage() as stage:
        system = f"icrc72:subscriber:sys:{principal_text(ANN)}"
        stage.subscribe(ANN, system)
        stage.subscribe(BOB, "*")
        drafts = [EventDraft(it, text("news"), STRANGER, 0) for it in (system, "com.fine")]
        stage.log.append(*drafts)
        stage.broadcaster.catch_up()
        stage.run(1)
        assert stage.subscribers[ANN].messages == []
        assert [it["namespace"] for it in stage.subscribers[BOB].messages] == ["com.fine"]


@pytest.mark.matrix("ICRC72-70", "ICRC72-71", "ICRC72-72", "ICRC72-74", "ICRC72-75")
def test_statistics_of_events_that_were_sent_equal_what_subscribers_and_log_hold() -> None:
    with stage_with({PUBLISHERS + "allowed:list": principals(PUBLISHER, OTHER)}) as stage:
        stage.subscribe(ANN, filter="a")  # selects none
        stage.subscribe(BOB, skip=(2, None))
        stage.subscribe(BOB, "com.*")
        stage.subscribe(STRANGER)
        stage.subscriber(STRANGER).confirms = False
        for publisher in (PUBLISHER, PUBLISHER, OTHER):
            assert published(stage, publisher) == "Ok"

        def asked(name: str, **query: Any) -> list[dict[str, Any]]:
            return [stats(info) for info in stage.subnet.ask(ANN, ORCHESTRATOR, f"icrc72_get_{name}", query)]  # type: ignore[attr-defined]

        counted = {who: len(each.messages) for who, each in stage.subscribers.items()}
        assert counted == {ANN: 0, BOB: 4, STRANGER: 3}
        assert [tuple(it.values()) for it in asked("publications")] == [(2, 3, 3, 7, 4)]
        assert [it["icrc72:publisher:stats:events"] for it in asked("publishers")] == [2, 1]
        pairs = asked("publication_publishers", namespace=NAMESPACE)
        assert [it["icrc72:publisher_publication:stats:events"] for it in pairs] == [2, 1]
        assert [tuple(it.values())[1:3] for it in asked("subscriptions")] == [(0, 0), (1, 1), (3, 3), (3, 0)]
        assert [tuple(it.values())[:3] for it in asked("subscribers")] == [(1, 0, 0), (2, 4, 4), (1, 3, 0)]
