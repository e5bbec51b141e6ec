"""Peers that send or hold too much: memory stays bounded, and others are served while it lasts."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from wamp_clients.router_process import PREFIX, REALM, RouterProcess, router
from wamp_load import ENCODE, RefusedCall, Wire, frames, pipelined

pytestmark = pytest.mark.slow

MIB = 1 << 20
SESSIONS = 5_000
MOST_BYTES_A_SESSION = 60_000
_numbers = count()
_open: list[Wire] = []


@pytest.fixture
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    with router(tmp_path_factory.mktemp("router")) as it:
        yield it


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close whatever connection a test has opened."""
    yield
    while _open:
        _open.pop().close()


def joined(running: RouterProcess, serializer: str = "msgpack", carrier: str = "rawsocket") -> Wire:
    _open.append(Wire(running.ports[carrier], serializer, path="/wamp" if carrier == "websocket" else None))
    return _open[-1].join(REALM)


def ended(peer: Wire) -> bool:
    """Tell whether the router ends the connection of a peer that now reads all that comes."""
    peer.socket.settimeout(10)
    with suppress(ConnectionError, TimeoutError):
        while peer.socket.recv(1 << 20):
            pass
        return True
    return isinstance(_last_error(peer), ConnectionError)


def _last_error(peer: Wire) -> Exception | None:
    try:
        peer.socket.sendall(b"\x01\0\0\0")
        peer.socket.recv(1)
    except OSError as error:
        return error
    return None


def seconds_of_a_publication(peer: Wire) -> float:
    began = time.monotonic()
    peer.publish(f"{PREFIX}well{next(_numbers)}", 1)
    return time.monotonic() - began


@pytest.mark.matrix("WAMP-68")
@pytest.mark.parametrize("carrier", ["rawsocket", "websocket"])
def test_a_subscriber_that_reads_nothing_is_dropped_and_others_get_everything(
    running: RouterProcess, carrier: str
) -> None:
    topic = f"{PREFIX}flood"
    slow, good, publisher = joined(running, carrier=carrier), joined(running), joined(running)
    slow.subscribe(topic)
    subscription = good.subscribe(topic)
    before = running.resident_bytes()
    for number in range(100):
        publisher.publish(topic, number, "x" * 200_000)
        message = good.receive()
        assert message[:2] == [36, subscription]
        assert message[4][0] == number
    assert ended(slow)
    stored = 100 * 200_200
    assert running.resident_bytes() - before < stored + 24 * MIB
    for each in (good, publisher):
        each.close()


@pytest.mark.matrix("WAMP-68")
def test_a_caller_that_takes_no_results_is_read_no_further(running: RouterProcess) -> None:
    flooder, other = joined(running), joined(running)
    topic = f"{PREFIX}results"
    for _ in range(100):
        other.publish(topic, "x" * 10_000)
    subscription = other.subscribe(topic)
    call = flooder.framed(ENCODE["msgpack"]([48, 1, {}, "wamp.subscription.get_events", [subscription]]))
    before = running.resident_bytes()
    flooder.socket.setblocking(False)
    sent = 0
    with suppress(BlockingIOError, ConnectionError):
        while sent < 20_000:  # 20 GB of results
            flooder.socket.send(call)
            sent += 1
    for _ in range(20):
        assert seconds_of_a_publication(other) < 5
    assert running.resident_bytes() - before < 64 * MIB
    flooder.close()
    other.close()


def test_a_flood_of_publications_lets_others_have_their_turn(running: RouterProcess) -> None:
    flooder, other = joined(running), joined(running)
    all_frames = frames(flooder, f"{PREFIX}flood", ["x" * 100], {}, 20_000)
    flooder.socket.setblocking(False)
    sent, answered = 0, 0
    while sent < len(all_frames):
        with suppress(BlockingIOError):
            sent += flooder.socket.send(all_frames[sent : sent + (1 << 16)])
        with suppress(BlockingIOError):
            flooder.socket.recv(1 << 20)
        if not answered or sent % 10 == 0:
            answered += seconds_of_a_publication(other) < 5
    assert answered > 0
    flooder.close()
    other.close()


@pytest.mark.parametrize(("code", "done"), [(32, 33), (64, 65)])
def test_very_many_subscriptions_and_registrations_of_one_session_go_when_it_leaves(
    running: RouterProcess, code: int, done: int
) -> None:
    other = joined(running)
    grown = []
    for _ in range(3):
        flooder, before, accepted = joined(running), running.resident_bytes(), 0
        for request in range(1, 20_001):
            flooder.send([code, request, {}, f"com.other.{code}.topic{request}"])
        for _ in range(20_000):
            accepted += flooder.receive()[0] == done
        assert accepted > 0
        grown.append(running.resident_bytes() - before)
        assert seconds_of_a_publication(other) < 5
        flooder.close()
        assert seconds_of_a_publication(other) < 5
    assert grown[0] < 100 * MIB
    assert grown[2] < max(grown[0] / 2, 8 * MIB)  # what the first left was given back
    with pytest.raises(RefusedCall, match="no_such"):
        other.call(f"com.other.{code}.topic1")
    other.close()


def test_calls_that_are_never_answered_go_with_their_callee(running: RouterProcess) -> None:
    callee, caller = joined(running), joined(running)
    callee.send([64, 1, {}, "com.other.silent"])
    callee.receive()
    for request in range(1, 5_001):
        caller.send([48, request, {}, "com.other.silent", [request]])
    other = joined(running)
    assert seconds_of_a_publication(other) < 5
    callee.close()
    answers = [caller.receive() for _ in range(5_000)]
    assert {answer[0] for answer in answers} == {8}
    reasons = {answer[4] for answer in answers}
    assert "wamp.error.canceled" in reasons
    beyond = "wamp.error.unavailable"  # than may wait for one callee
    afterwards = "wamp.error.no_such_procedure"
    assert reasons <= {"wamp.error.canceled", beyond, afterwards}
    for each in (caller, other):
        each.close()


def test_half_open_handshakes_are_dropped_in_time(running: RouterProcess) -> None:
    beginnings: list[tuple[str, bytes]] = [
        ("rawsocket", b""),
        ("rawsocket", b"\x7f"),
        ("rawsocket", b"\x7f\xf2\0\0"),
        ("websocket", b"GET /wamp HTTP/1.1\r\nHost: x\r\n"),
    ]
    peers = []
    for carrier, sent in beginnings:
        peer = socket.create_connection(("127.0.0.1", running.ports[carrier]), 10)
        peer.sendall(sent)
        peers.append((carrier, peer))
    challenged = Wire(running.ports["rawsocket"], "json")
    _open.append(challenged)
    challenged.send([1, REALM, {"roles": {"caller": {}}, "authmethods": ["ticket"], "authid": "tina"}])
    assert challenged.receive()[0] == 4
    assert seconds_of_a_publication(joined(running)) < 5
    for carrier, peer in peers:
        if carrier == "rawsocket":  # HTTP heads are aiohttp's affair
            with suppress(ConnectionResetError):
                while peer.recv(1_000):
                    pass
        peer.close()
    assert challenged.receive()[2] == "wamp.error.protocol_violation"


def test_a_message_as_large_as_allowed_is_taken_and_a_larger_one_ends_the_session(running: RouterProcess) -> None:
    peer, other = joined(running), joined(running)
    peer.publish("com.other.large", bytes((1 << 20) - 200))
    assert seconds_of_a_publication(peer) < 30
    broken = joined(running, carrier="websocket")
    broken.socket.settimeout(30)
    with suppress(ConnectionError):
        broken.socket.sendall(broken.framed(bytes((1 << 20) + 1)))
    assert ended(broken)
    assert seconds_of_a_publication(other) < 5
    for each in (peer, other):
        each.close()


def test_many_idle_sessions_take_little_memory_and_leave_others_alone(
    running: RouterProcess, record_property: Any
) -> None:
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < SESSIONS + 500:
        pytest.skip(f"fewer than {SESSIONS + 500} files may be open")
    before = running.resident_bytes()
    sessions = [joined(running) for _ in range(SESSIONS)]
    each = (running.resident_bytes() - before) / SESSIONS
    record_property("sessions", f"{each:,.0f} bytes for an idle session")
    print(f"{SESSIONS} idle sessions: {each:,.0f} bytes each")
    assert each < MOST_BYTES_A_SESSION
    publisher = joined(running)
    assert pipelined(publisher, frames(publisher, f"{PREFIX}busy", [1], {}, 5_000), 5_000, 256) > 0
    for session in sessions:
        session.close()
    assert seconds_of_a_publication(publisher) < 10
    publisher.close()
