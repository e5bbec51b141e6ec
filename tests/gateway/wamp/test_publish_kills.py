"""A router is killed while clients publish: what it acknowledged is in the history afterwards, with the same ids."""

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest

from long_hauls import soak
from wamp_clients.router_process import PREFIX, REALM, router
from wamp_load import Wire

LIVES = 3
"""Routers that go on in one log, one after another."""

PUBLISHERS = 3
LONGEST_LIFE = 1.0
"""Seconds of publishing before the kill."""

WINDOW = 50
PAGE = 1_000

Published = list[tuple[int, str]]
"""Publication ids with what was published, in the order of PUBLISHED."""


def publish(port: int, topic: str, numbers: "count[int]", published: Published) -> None:
    """Publish with some unanswered until the connection breaks; note what was acknowledged."""
    sent: dict[int, str] = {}
    requests = count(1)
    with suppress(OSError), closing(Wire(port, "msgpack")) as peer:
        peer.join(REALM)
        while True:
            while len(sent) < WINDOW:
                request = next(requests)
                sent[request] = f"{topic} {next(numbers)}"
                peer.send([16, request, {"acknowledge": True}, topic, [sent[request]]])
            message = peer.receive()
            assert message[0] == 17, message
            published.append((message[2], sent.pop(message[1])))


def life(folder: Path, seconds: float, topics: dict[str, "count[int]"]) -> dict[str, Published]:
    """Run a router that goes on in the log of ``folder``, kill it, and return what it acknowledged by topic."""
    published: dict[str, Published] = {topic: [] for topic in topics}
    with router(folder, log=str(folder / "events.sqlite")) as running:
        port = running.ports["rawsocket"]
        threads = [
            threading.Thread(target=publish, args=(port, topic, numbers, published[topic]))
            for topic, numbers in topics.items()
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        running.kill()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
    return published


def history(folder: Path, topic: str) -> Published:
    """Return what a restarted router has of ``topic``, in pages."""
    found: Published = []
    with (
        router(folder, log=str(folder / "events.sqlite")) as running,
        closing(Wire(running.ports["rawsocket"], "msgpack").join(REALM)) as peer,
    ):
        subscription = peer.subscribe(topic)
        anchor: dict[str, int] = {}
        while True:
            events, about = peer.call("wamp.subscription.get_events", subscription, limit=PAGE, **anchor)
            found += [(event["publication"], event["args"][0]) for event in events]
            if not about["more"]:
                return found
            anchor = {"after_publication": events[-1]["publication"]}


def survive(folder: Path, seed: int, told: Callable[[str, object], None] | None = None) -> None:
    """Kill routers that go on in one log, and compare what was acknowledged with what is there."""
    draw = Random(seed)
    topics = {f"{PREFIX}kept{number}": count() for number in range(PUBLISHERS)}
    acknowledged: dict[str, Published] = {topic: [] for topic in topics}
    for _ in range(LIVES):
        for topic, published in life(folder, draw.random() * LONGEST_LIFE, topics).items():
            acknowledged[topic] += published
    total = 0
    for topic, published in acknowledged.items():
        found = history(folder, topic)
        position = {publication: at for at, (publication, _) in enumerate(found)}
        assert len(position) == len(found)
        assert len({said for _, said in found}) == len(found)
        assert set(published) <= set(found)
        order = [position[publication] for publication, _ in published]
        assert order == sorted(order)
        total += len(published)
    assert total > 0
    if told is not None:
        told("kills", f"acknowledged in {LIVES} lives: about 10^{len(str(total)) - 1}")


@pytest.mark.slow
@pytest.mark.matrix("WAMP-70")
def test_what_was_published_survives_a_kill(tmp_path: Path) -> None:
    survive(tmp_path, seed=-1)


@soak(rounds=50)
@pytest.mark.matrix("WAMP-70")
def test_what_was_published_survives_any_kill(
    tmp_path: Path, soak_round: int, record_property: Callable[[str, object], None]
) -> None:
    survive(tmp_path, soak_round, record_property)
