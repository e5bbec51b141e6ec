"""A tick that fails is taken back with what was put in before it, and the chains go on."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from node.chains import ALICE, PUBLISHER, READER, live_chains, modelled, signed, submit
from node.journal.test_journal import Clock, fingerprint
from relaycast_collator import ChainSimulator, Fact
from relaycast_node.chain.exceptions import ChainsHalted, TickFailed
from relaycast_node.chain.signal import Signal
from relaycast_node.chain_clock import ChainClock
from relaycast_node.journal.dropped import FILE, MOST_BYTES, OLD_FILE, keep_aside
from relaycast_node.journal.entries import FeedEntry, StoreEntry, TickEntry
from relaycast_node.journal.frames import whole_frames
from relaycast_node.journal.input_log import InputLog
from relaycast_node.journal.journal import InputJournal
from relaycast_node.journal.replay import JournalReplay, OtherChains
from relaycast_node.line_rate import LineRate
from relaycast_pallets.frame.typed_storage import storage_prefix

NOW = storage_prefix("Timestamp", "Now")
DIGESTS = storage_prefix("Subscriber", "SubscribedKeysDigests")
"""Read by a reader when the relay block of the same tick is sealed already."""


def poison(live: ChainClock, para_id: int | None = None, key: bytes = NOW) -> None:
    """Write what pallets cannot read, as an input that is not checked."""
    live.set_storage(para_id, {key: b"\xff"}, is_checked=True)


def state_of(live: ChainClock) -> Any:
    """Return all that clients can ask of the chains, but for blocks that are no longer on a branch."""
    return [(it[0], it[1], it[3], it[5:]) for it in fingerprint(live)[:-3]], fingerprint(live)[-3:]


def registering() -> ChainClock:
    """Return chains at block 0 whose publisher registers with the first block."""
    chains = ChainSimulator()
    chains.add_parachain(PUBLISHER)
    chains.register_publisher(PUBLISHER)
    chains.add_parachain(READER)
    live = ChainClock(chains, chains.step)
    live.log = InputLog(Clock())
    return live


@pytest.mark.parametrize("para_id", [None, PUBLISHER])
def test_the_first_tick_is_taken_back_too_with_the_calls_of_the_set_up(para_id: int | None) -> None:
    live, twin = registering(), registering()
    assert live.chains.waiting_calls, "the publisher registers with the first block"
    poison(live, para_id)
    with pytest.raises(TickFailed, match=r"the chains are back at relay block 0, the input since then was dropped$"):
        live.new_block()
    assert live.halted is None
    for chains in (live, twin):
        chains.new_block(4)
    assert state_of(live) == state_of(twin)
    assert live.chains.relay_chain.broadcaster.storage.registered_publishers.count() == 1


@pytest.mark.parametrize(
    ("para_id", "key"),
    [(None, NOW), (PUBLISHER, NOW), (READER, DIGESTS), (None, bytes(40_000))],
    ids=["relay chain", "publisher", "reader", "long key"],
)
def test_a_tick_that_fails_leaves_everything_as_the_tick_before_it_did(para_id: int | None, key: bytes) -> None:
    live, told = live_chains(), list[Fact]()
    twin = live_chains()
    live.facts.connect(told.append)
    data = signed(live.relay, ALICE, modelled(live.relay).runtime.encode_call("System", "remark", remark=b"x"), nonce=5)
    for chains in (live, twin):
        chains.log = InputLog(Clock())
        chains.relay.submit(data)
        chains.new_block(3)
    before, facts = state_of(live), len(told)
    live.publish(PUBLISHER, bytes(32), b"value")
    submit(live.relay, ALICE, "System", "remark", remark=b"dropped")
    live.snapshot()
    live.block_time = "instant"
    live.travel(live.time.of_block(9))
    poison(live, para_id, key)
    with pytest.raises(
        TickFailed, match=r"relay block 4 could not be built: .*; the chains are back at relay block 3"
    ) as it:
        live.new_block()
    assert it.value.dropped == 6
    assert (state_of(live), len(told)) == (before, facts)
    for chains in (live, twin):
        chains.new_block(3)
    assert state_of(live) == state_of(twin)


def test_a_failed_tick_undoes_a_move_of_the_head_since_the_tick_before_it() -> None:
    live = live_chains()
    live.new_block(2)
    kept = live.snapshot()
    live.new_block(6)
    before = state_of(live)
    live.revert(kept)
    poison(live)
    with pytest.raises(TickFailed):
        live.new_block()
    assert state_of(live) == before
    assert live.snapshots == [kept]
    live.new_block(3)
    live.revert(kept)
    assert live.relay.best.number == 2


def test_clients_see_the_blocks_of_a_failed_tick_go_and_no_final_one_among_them() -> None:
    live, moves, final = live_chains(), list[int](), list[int]()
    for chain in live.served():
        chain.finality_lag = 0
    live.new_block(2)
    live.relay.moved_heads.connect(lambda move: moves.append(move.block.number))
    live.relay.finalized_heads.connect(lambda it: final.append(it.block.number))
    poison(live, READER, DIGESTS)
    with pytest.raises(TickFailed):
        live.new_block()
    assert (moves, final, live.relay.best.number) == ([2], [], 2)
    live.new_block()
    assert (final, live.relay.finalized.number) == ([3], 3)


def test_a_number_of_blocks_ends_at_the_one_that_fails() -> None:
    def step() -> None:
        chains.step()
        if chains.tick == 4:
            raise OSError("out of luck")

    chains = ChainSimulator()
    live = ChainClock(chains, step)
    with pytest.raises(
        TickFailed, match=r"relay block 4 could not be built: OSError: out of luck; .*there was no input"
    ):
        live.new_block(9)
    assert live.relay.best.number == 3


def test_the_clock_goes_on_after_a_tick_that_failed_with_an_input() -> None:
    async def work() -> None:
        live = live_chains(block_time=0.01)
        clock = asyncio.create_task(live.run())
        poison(live)
        while live.relay.best.number < 3:
            await asyncio.sleep(0.01)
        assert (clock.done(), live.paused) == (False, None)
        clock.cancel()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_the_clock_stands_where_a_failed_tick_takes_the_block_time_back() -> None:
    async def work() -> None:
        live = live_chains(block_time="manual")
        clock = asyncio.create_task(live.run())
        live.new_block()
        live.block_time = 0.01
        poison(live)
        while str(live.block_time) != "manual":
            await asyncio.sleep(0.01)
        live.block_time = 0.01
        while live.relay.best.number < 3:
            await asyncio.sleep(0.01)
        assert not clock.done()
        clock.cancel()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_the_clock_waits_for_an_input_where_a_tick_fails_by_itself() -> None:
    is_broken = True
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        chains.step()
        if is_broken:
            raise ValueError("the workload is broken")

    chains = ChainSimulator()
    chains.add_parachain(PUBLISHER)
    live = ChainClock(chains, step, block_time=0.01)

    async def work() -> None:
        nonlocal is_broken
        clock = asyncio.create_task(live.run())
        while live.paused is None:
            await asyncio.sleep(0.01)
        tried = steps
        await asyncio.sleep(0.1)
        assert (steps, clock.done(), live.relay.best.number) == (tried, False, 0)
        assert "relay block 1 could not be built: ValueError: the workload is broken" in live.paused
        is_broken = False
        live.publish(PUBLISHER, bytes(32), b"an input wakes the clock")
        while live.relay.best.number < 3:
            await asyncio.sleep(0.01)
        clock.cancel()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_chains_that_cannot_go_back_halt_and_are_still_there_to_read() -> None:
    chains = ChainSimulator()
    chains.add_parachain(READER)
    reader = live_chains().parachains[READER]
    live = ChainClock(chains, chains.step, wasm_parachains={9_999: reader})
    live.new_block(2)
    head = live.relay.best.hash
    poison(live, READER, DIGESTS)
    with pytest.raises(TickFailed, match="relay block 3 could not be built"):
        live.new_block()
    assert (live.relay.best.hash, live.relay.best.number) == (head, 2)
    assert live.halted is not None
    assert "halted until the next start" in live.halted
    inputs: list[Callable[[], object]] = [
        live.new_block,
        lambda: live.set_storage(None, {b"a": b"b"}),
        lambda: submit(live.relay, ALICE, "System", "remark", remark=b"x"),
        lambda: setattr(live, "block_time", 1.0),
    ]
    for give in inputs:
        with pytest.raises(ChainsHalted, match="halted until the next start"):
            give()
    assert live.relay.state_at(head).get(NOW) is not None


def kept(file: Path) -> tuple[ChainClock, JournalReplay]:
    journal, frames = InputJournal.open(file, clock=Clock())
    live = live_chains()
    replay = JournalReplay(live)
    replay.run(frames)
    live.log = journal
    if replay.failed is not None:
        journal.drop(replay.failed.number, replay.failed.reason)
    return live, replay


def test_a_journal_goes_back_with_the_chains_and_the_inputs_are_kept_aside(tmp_path: Path) -> None:
    file = tmp_path / "j"
    live, _ = kept(file)
    submit(live.relay, ALICE, "System", "remark", remark=b"kept", nonce=3)
    live.new_block(2)
    live.publish(PUBLISHER, bytes(32), b"value")
    poison(live)
    live.log.note(FeedEntry(b"log", 1, 2))
    with pytest.raises(TickFailed, match=rf"2 inputs since then were dropped \(kept in .*/{FILE}\)"):
        live.new_block()
    before = state_of(live)
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [(it["relayBlock"], it["input"]) for it in lines] == [(3, "publish"), (3, "storage")]
    assert lines[1]["values"] == [["0x" + NOW.hex(), "0xff"]]
    assert "a u64 has 8 bytes" in lines[1]["reason"]
    found = [it.entry for it in whole_frames(file.read_bytes())]
    assert found[-1] == FeedEntry(b"log", 1, 2)
    assert not any(isinstance(it, StoreEntry) for it in found)
    live.log.close()  # type: ignore[attr-defined]
    again, replay = kept(file)
    assert (state_of(again), replay.failed) == (before, None)
    again.new_block()
    again.log.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("has_tick", [True, False])
def test_a_journal_that_ends_in_a_tick_that_fails_starts_behind_the_tick_before_it(
    tmp_path: Path, has_tick: bool
) -> None:
    file = tmp_path / "j"
    live, _ = kept(file)
    live.new_block(2)
    before = state_of(live)
    poison(live)
    if has_tick:
        live.log.note(TickEntry())
    live.log.close()  # type: ignore[attr-defined]
    again, replay = kept(file)
    assert (replay.failed is not None) == has_tick
    if not has_tick:
        with pytest.raises(TickFailed):
            again.new_block()
    assert state_of(again) == before
    again.new_block()
    after = state_of(again)
    again.log.close()  # type: ignore[attr-defined]
    third, replay = kept(file)
    assert (state_of(third), replay.failed) == (after, None)
    third.log.close()  # type: ignore[attr-defined]


def test_a_tick_that_once_passed_and_fails_now_means_other_chains(tmp_path: Path) -> None:
    live, _ = kept(tmp_path / "j")
    live.new_block(2)
    live.log.close()  # type: ignore[attr-defined]
    _, frames = InputJournal.open(tmp_path / "j")
    other = live_chains()
    poison(other)
    with pytest.raises(OtherChains, match="relay block 1 could not be built"):
        JournalReplay(other).run(frames)


def test_the_file_of_dropped_inputs_is_bounded(tmp_path: Path) -> None:
    big = StoreEntry(None, [(bytes([index]), b"v" * 16_384) for index in range(200)], None)
    for _ in range(12):
        keep_aside(tmp_path, [big], relay_block=1, reason="x")
    assert (tmp_path / FILE).stat().st_size <= MOST_BYTES
    assert (tmp_path / OLD_FILE).stat().st_size <= MOST_BYTES
    keep_aside(tmp_path, [StoreEntry(None, [(b"k", None)], None)] * 1_500, relay_block=1, reason="x")
    lines = (tmp_path / FILE).read_text().splitlines()
    assert any('"input":"more","count":500' in line for line in lines)


def test_the_dropped_inputs_of_one_tick_are_bounded_together_and_each_is_a_whole_line(tmp_path: Path) -> None:
    big = StoreEntry(None, [(bytes([index]), b"v" * 16_384) for index in range(250)], None)
    keep_aside(tmp_path, [big] * 20, relay_block=1, reason="x")
    assert (tmp_path / FILE).stat().st_size <= MOST_BYTES
    rows = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert rows[0]["input"] == "more"
    assert rows[0]["count"] + len(rows) - 1 == 20
    assert rows[-1]["input"] == "storage"
    assert rows[-1]["cut"].startswith('{"chain":null,"values":[["0x00",')
    for _ in range(2):
        keep_aside(tmp_path, [big] * 20, relay_block=1, reason="x")
    assert all((tmp_path / name).stat().st_size <= MOST_BYTES for name in (FILE, OLD_FILE))


def test_a_listener_that_fails_ends_neither_the_block_nor_the_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live, heard, told = live_chains(), list[int](), list[Fact]()

    def fail(_: object) -> None:
        raise KeyError("a listener's own fault")

    for signal in (live.relay.new_heads, live.relay.finalized_heads, live.facts, live.ticks, live.relay.submitted):
        signal.connect(fail)
    live.relay.new_heads.connect(lambda block: heard.append(block.number))
    live.facts.connect(told.append)
    submit(live.relay, ALICE, "System", "remark", remark=b"x")
    live.new_block(3)
    assert heard == [1, 2, 3]
    assert live.listener_failures == 3 + 1 + len(told) + 3 + 1
    assert 'a listener failed: KeyError: "a listener\'s own fault"' in caplog.text


def test_a_signal_counts_each_failure_and_logs_so_many_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    signal: Signal[int] = Signal()
    signal.connect(lambda number: 1 // number)  # type: ignore[arg-type]
    for _ in range(100):
        signal.emit(0)
    assert signal.failures == 100
    assert len([it for it in caplog.records if it.name.endswith("signal")]) <= 20


def test_lines_beyond_the_rate_are_counted_in_the_first_of_the_next_minute() -> None:
    clock = Clock()
    rate = LineRate(2, clock=clock)

    def passed() -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, "line %d", (7,), None)
        return record.getMessage() if rate.filter(record) else None

    assert [passed() for _ in range(5)] == ["line 7", "line 7", None, None, None]
    clock.seconds += 60
    assert [passed() for _ in range(2)] == ["line 7 (3 lines before it left out)", "line 7"]


def test_a_key_too_long_for_a_trie_is_refused_at_the_call() -> None:
    live = live_chains()
    with pytest.raises(ValueError, match="a key has at most 32,767 bytes, got 32,768"):
        live.set_storage(None, {bytes(32_768): b""})
    with pytest.raises(ValueError, match="a key has at most 32,767 bytes, got 40,000"):
        live.set_storage(PUBLISHER, {bytes(40_000): b""}, child=b"x")
    for name in (b"", bytes(32_745)):
        with pytest.raises(ValueError, match="the name of a child trie has 1 to 32,744 bytes"):
            live.set_storage(None, {b"a": b""}, child=name)
    live.set_storage(None, {bytes(32_767): b"v", b"": b"v"})
    live.set_storage(PUBLISHER, {bytes(32_767): b"v", b"": b"v"}, child=bytes(32_744))
    live.new_block(2)
    assert live.relay.state_at(live.relay.best.hash).get(bytes(32_767)) == b"v"


def test_every_storage_item_refuses_what_its_pallet_cannot_read_and_takes_what_stands_there() -> None:
    live = live_chains()
    live.new_block(3)
    for chain in live.served():
        for key, value in chain.state_at(chain.best.hash).pairs():
            if not key.startswith(b":"):
                chain.check_storage({key: value})
        for item in (storage.item for pallet in modelled(chain).runtime.pallets for storage in pallet.storage):
            with pytest.raises(ValueError, match=".".join(item.name)):
                chain.check_storage({item.prefix + b"odd": b"\x00"})


@pytest.mark.parametrize(
    ("para_id", "pallet", "item", "value", "said"),
    [
        (None, "Timestamp", "Now", b"\xff", r"Timestamp.Now: got 0xff, expected a u64: a u64 has 8 bytes, got 1"),
        (READER, "Timestamp", "Now", b"", r"Timestamp.Now: got 0x, expected a u64"),
        (
            READER,
            "ParachainSystem",
            "HrmpWatermark",
            b"\xff",
            r"ParachainSystem.HrmpWatermark: got 0xff, expected a u32",
        ),
        (READER, "Subscriber", "SubscribedKeysDigests", b"\xff", r"Subscriber.SubscribedKeysDigests: got 0xff"),
        (None, "System", "Events", b"\xff", r"System.Events: got 0xff, expected a Vec<EventRecord"),
    ],
)
def test_a_value_that_no_pallet_can_read_is_refused_at_the_call(
    para_id: int | None, pallet: str, item: str, value: bytes, said: str
) -> None:
    live = live_chains()
    with pytest.raises(ValueError, match=said):
        live.set_storage(para_id, {storage_prefix(pallet, item): value})
    live.new_block()


def test_each_item_of_every_pallet_can_be_removed_and_the_chains_go_on() -> None:
    live = live_chains()
    live.new_block(2)
    for chain in live.served():
        for item in (storage.item for pallet in modelled(chain).runtime.pallets for storage in pallet.storage):
            for key in list(chain.state_at(chain.best.hash).keys(item.prefix))[:2]:
                live.set_storage(chain.number_in_entries, {key: None})
        live.new_block(2)
    assert live.relay.best.number == 2 + 2 * len(live.served())


def test_chains_that_halted_start_again_behind_the_last_whole_tick(tmp_path: Path) -> None:
    file = tmp_path / "j"

    def begun() -> tuple[ChainClock, InputJournal]:
        chains = ChainSimulator()
        chains.add_parachain(READER)
        live = ChainClock(chains, chains.step, wasm_parachains={9_999: live_chains().parachains[READER]})
        journal, frames = InputJournal.open(file, clock=Clock())
        JournalReplay(live).run(frames)
        live.log = journal
        return live, journal

    live, journal = begun()
    live.new_block(2)
    head = live.relay.best.hash
    live.set_storage(None, {NOW: b"\xff"}, is_checked=True)
    with pytest.raises(TickFailed):
        live.new_block()
    with pytest.raises(ChainsHalted):
        live.new_block()
    journal.close()
    again, journal = begun()
    assert (again.relay.best.hash, again.halted) == (head, None)
    again.new_block()
    assert again.relay.best.number == 3
    journal.close()
