"""The chains that are served are those that were announced: journals and event logs that do not fit one another."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import Request, urlopen

import pytest
from msgspec import Struct

import relaycast as rc
from app.serve_process import journal_in
from app.test_serve_data import blocks_in_log, contents, ensure_no_gap_and_no_double
from app.test_subscribe_verb import wait_for
from app.webhook import webhook
from command_line import Refused
from relaycast.refusal import BadInput
from relaycast.serve import kept_points, network
from relaycast.serve.gateway_face import open_gateway
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.kept_chains import keeping
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.log import EventLog
from relaycast_node.chain.exceptions import TickFailed
from relaycast_node.chain_clock import ChainClock
from relaycast_node.journal.entries import FeedEntry, TickEntry
from relaycast_node.journal.frames import Frame, encode_frame, whole_frames

BLOCKS = 4


@contextmanager
def kept_live(folder: Path, *, accept_loss: bool = False, keep: str = "") -> Iterator[ChainClock]:
    """Let the chains of a folder go on, without a server."""
    living = network.living("oracle", "manual", keep=keep)
    gateway = open_gateway(living, str(folder), (), accept_loss=accept_loss)
    with keeping(living, str(folder), gateway, accept_loss=accept_loss):
        yield living.clock


def build(folder: Path, blocks: int, value: bytes | None = None, *, accept_loss: bool = False) -> None:
    """Build blocks; a ``value`` in the state makes them others than blocks without one."""
    with kept_live(folder, accept_loss=accept_loss) as live:
        if value is not None:
            live.set_storage(None, {b"a": value})
        live.new_block(blocks)


def frames_in(folder: Path) -> list[Frame]:
    return list(whole_frames(journal_in(folder).read_bytes()))


def cut(folder: Path, end: int) -> None:
    file = journal_in(folder)
    file.write_bytes(file.read_bytes()[:end])


def as_killed(folder: Path) -> None:
    """Remove what a server notes when it stops: a killed one did not."""
    frames = frames_in(folder)
    assert isinstance(frames[-1].entry, FeedEntry)
    cut(folder, frames[-2].end)


def events(folder: Path) -> list[tuple[int, str, str]]:
    """Return sequence number, type and block of each event in the log."""
    with EventLog.open(folder / "events.sqlite") as log:
        found = [(record.seq, attributes_of(record)) for record in log.read(limit=1_000_000)]
    return [(seq, str(attributes["type"]), str(attributes["blockhash"])) for seq, attributes in found]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two starts, with the chains at relay block 4."""
    folder = tmp_path_factory.mktemp("built") / "data"
    build(folder, 2)
    build(folder, BLOCKS - 2)
    return folder


@pytest.fixture
def data(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(built, tmp_path_factory.mktemp("copied") / "data"))


def ends(folder: Path) -> list[int]:
    """Return the places behind each frame, and one at random in each."""
    draw, places, start = Random(5), [0], 0
    for frame in frames_in(folder):
        places += [draw.randrange(start + 1, frame.end), frame.end]
        start = frame.end
    return places


def test_a_journal_cut_anywhere_serves_what_was_announced_or_nothing(built: Path, tmp_path: Path) -> None:
    before, whole = events(built), frames_in(built)
    for end in ends(built):
        folder = Path(shutil.copytree(built, tmp_path / str(end)))
        cut(folder, end)
        reached = sum(isinstance(it.entry, TickEntry) and it.end <= end for it in whole)
        if reached < BLOCKS:
            line = f"relay block {reached}, and an event log that announced relay block {BLOCKS}"
            with pytest.raises(BadInput, match=line), kept_live(folder):
                pass
        else:
            with kept_live(folder) as live:
                assert live.relay.best.number == BLOCKS
        assert events(folder) == before, end


def emptied(folder: Path) -> None:
    journal_in(folder).write_bytes(b"")


def removed(folder: Path) -> None:
    shutil.rmtree(folder / "chains")


def from_an_older_copy(folder: Path) -> None:
    end = next(it.end for it in frames_in(folder)[3:] if isinstance(it.entry, FeedEntry))
    cut(folder, end)


@pytest.mark.parametrize(("harm", "reached"), [(emptied, 0), (removed, 0), (from_an_older_copy, 2)])
def test_a_journal_behind_the_announced_blocks_is_refused_in_one_line(
    data: Path, refused: Refused, harm: Callable[[Path], None], reached: int
) -> None:
    harm(data)
    before = contents(data) if (data / "chains").exists() else {}
    line = refused("serve", "oracle", "--port", "0", "--data", str(data))
    assert f"relay block {reached}, and an event log that announced relay block {BLOCKS}" in line
    assert "--accept-loss" in line
    assert (contents(data) if (data / "chains").exists() else {}) == before


@pytest.mark.parametrize("harm", [emptied, removed, from_an_older_copy])
def test_a_loss_that_is_accepted_keeps_all_events_and_announces_new_blocks_under_new_ids(
    data: Path, harm: Callable[[Path], None]
) -> None:
    before = events(data)
    harm(data)
    with kept_live(data, accept_loss=True):
        pass
    assert events(data) == before
    build(data, 2, b"other")
    after = events(data)
    assert after[: len(before)] == before
    assert [seq for seq, _, _ in after] == list(range(1, len(after) + 1))
    relay = max(blocks_in_log(data).values(), key=len)
    assert len(relay) == BLOCKS + 2 == len({block for _, block in relay})
    with kept_live(data):
        pass
    assert events(data) == after


def test_a_journal_that_built_other_blocks_than_were_announced_is_refused(built: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, value in ((one, b"one"), (other, b"other")):
        shutil.copytree(built, folder)
        build(folder, 2, value)
    for is_killed in (False, True):
        mixed = Path(shutil.copytree(one, tmp_path / f"mixed-{is_killed}"))
        shutil.copy(journal_in(other), journal_in(mixed))
        if is_killed:
            as_killed(mixed)
        before = events(mixed)
        with pytest.raises(BadInput, match="relay block 6, and an event log that announced another relay block 6"):
            build(mixed, 1)
        assert events(mixed) == before


def test_an_event_log_behind_a_killed_server_gets_what_it_lacks(built: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(built, tmp_path / "data"))
    build(data, 2)
    as_killed(data)
    shutil.copy(built / "events.sqlite", data / "events.sqlite")
    with kept_live(data):
        pass
    ensure_no_gap_and_no_double(data)
    assert max(map(len, blocks_in_log(data).values())) == BLOCKS + 2


def test_an_event_log_older_than_its_chains_is_refused(built: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(built, tmp_path / "data"))
    build(data, 2)
    shutil.copy(built / "events.sqlite", data / "events.sqlite")
    for accept_loss in (False, True):
        with pytest.raises(BadInput, match="relay block 6, and an older event log, which ends at relay block 4"):
            build(data, 1, accept_loss=accept_loss)


def test_a_loss_can_be_accepted_in_a_folder_alone(refused: Refused) -> None:
    line = refused("serve", "oracle", "--face", "cloudevents", "--accept-loss")
    assert line == "--accept-loss: got no --data, expected --data with the folder of the chains"


def test_a_missing_event_log_is_refused(data: Path, refused: Refused) -> None:
    (data / "events.sqlite").unlink()
    for _ in range(2):
        line = refused("serve", "oracle", "--port", "0", "--data", str(data))
        assert f"relay block {BLOCKS}, and an empty event log" in line


def test_a_loss_of_the_event_log_that_is_accepted_begins_with_the_next_block_under_new_ids(data: Path) -> None:
    before = events(data)
    (data / "events.sqlite").unlink()
    with pytest.raises(BadInput):
        build(data, 1)
    for _ in range(2):
        build(data, 1, accept_loss=True)
    relay = max(blocks_in_log(data).values(), key=len)
    assert [number for number, _ in relay] == [BLOCKS + 1, BLOCKS + 2]
    after = events(data)
    assert after[0][0] > 10**15 > before[-1][0]
    build(data, 1)
    assert [seq for seq, _, _ in events(data)][: len(after)] == [seq for seq, _, _ in after]


def test_events_of_a_tick_that_failed_are_not_announced(tmp_path: Path) -> None:
    with kept_live(tmp_path) as live:
        live.new_block(2)

        def fail(fact: object) -> None:
            if type(fact).__name__ == "BlockBuilt":
                raise RuntimeError("no block")

        live.chains.listeners.append(fail)
        with pytest.raises(TickFailed, match="no block"):
            live.new_block()
        live.chains.listeners.remove(fail)
        live.new_block()
    build(tmp_path, 1)
    ensure_no_gap_and_no_double(tmp_path)
    assert max(map(len, blocks_in_log(tmp_path).values())) == 4


class FeedEntryOfBefore(Struct, frozen=True, array_like=True, tag="feed"):
    """An entry as it was before it had the hash of the newest block."""

    log: bytes
    logged: int
    told: int


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_journal_that_noted_no_newest_block_goes_on(data: Path, *, is_killed: bool) -> None:
    written = b""
    for frame in frames_in(data)[: -1 if is_killed else None]:
        entry: Any = frame.entry
        if isinstance(entry, FeedEntry):
            entry = FeedEntryOfBefore(entry.log, entry.logged, entry.told)
        written += encode_frame(entry, index=frame.index, milliseconds=frame.milliseconds, safe=frame.safe)
    journal_in(data).write_bytes(written)
    build(data, 1)
    ensure_no_gap_and_no_double(data)
    assert max(map(len, blocks_in_log(data).values())) == BLOCKS + 1


def test_an_event_log_that_lacks_blocks_before_a_point_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_points, "TICKS_OF_A_POINT", 4)
    monkeypatch.setattr(network, "LEAST_KEPT", 2)
    build(tmp_path, 2)
    shutil.copytree(tmp_path, older := tmp_path.with_name(f"{tmp_path.name}-older"))
    with kept_live(tmp_path, keep="2") as live:
        live.new_block(10)
    assert list((tmp_path / "chains").glob("*.point"))
    as_killed(tmp_path)
    shutil.copy(older / "events.sqlite", tmp_path / "events.sqlite")
    with kept_live(tmp_path, keep="2"):
        pass
    ensure_no_gap_and_no_double(tmp_path)
    assert max(map(len, blocks_in_log(tmp_path).values())) == 12


def subscribed(chains: ServedNetwork, sink: str) -> None:
    body = json.dumps({"sink": sink, "protocol": "HTTP", "types": ["io.relaycast.block.imported"]}).encode()
    request = Request(f"{chains.http_url}/subscriptions", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as response:
        assert response.status == 201


def test_a_webhook_gets_each_block_once_across_stops_and_goes_on_after_a_lost_log(tmp_path: Path) -> None:
    with webhook() as (sink, came):
        for ticks in (3, 6):
            with rc.serve("oracle", data=tmp_path, allow_sink=["127.0.0.1"]) as chains:
                if not came:
                    subscribed(chains, sink)
                chains.new_block(3)
                count = 1 + len(chains.parachains)
                wait_for(lambda: len(came) >= count * ticks)  # noqa: B023 - called at once
        assert len({it.headers["ce-blockhash"] for it in came}) == len(came) == count * 6
        ids = {it.headers["ce-id"] for it in came}
        (tmp_path / "events.sqlite").unlink()
        with pytest.raises(ValueError, match="deliveries up to event"), rc.serve("oracle", data=tmp_path):
            pass
        with rc.serve("oracle", data=tmp_path, allow_sink=["127.0.0.1"], accept_loss=True) as chains:
            chains.new_block()
            wait_for(lambda: len(came) >= count * 7)
        assert len({it.headers["ce-blockhash"] for it in came}) == len(came) == count * 7
        assert not ids & {it.headers["ce-id"] for it in came[count * 6 :]}
