"""Chains that go on from their journal: after each input, after a kill at any byte, after a loss of power."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.chains import ALICE, BOB, PUBLISHER, READER, address, live_chains, modelled, signed, submit
from relaycast_node import timeline
from relaycast_node.chain.exceptions import CannotGoBack, UnknownBlock
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import Finality
from relaycast_node.chain_clock import ChainClock
from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.extrinsic.pool import BAN_SECONDS
from relaycast_node.extrinsic.pool_errors import PoolError, TemporarilyBanned
from relaycast_node.journal.entries import TickEntry
from relaycast_node.journal.frames import whole_frames
from relaycast_node.journal.journal import InputJournal, NotNoted
from relaycast_node.journal.replay import JournalReplay, OtherChains
from searches import examples


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def kept(file: Path, clock: Callable[[], float] = Clock()) -> ChainClock:  # noqa: B008 - it never moves
    """Return chains that go on where the journal ends."""
    journal, frames = InputJournal.open(file, clock=clock)
    live = live_chains()
    JournalReplay(live).run(frames)
    live.log = journal
    return live


def stop(live: ChainClock) -> None:
    assert isinstance(live.log, InputJournal)
    live.log.close()


def fingerprint(live: ChainClock) -> Any:
    """Return all that clients can ask of chains: blocks, forks, states, pools, what waits for the next block."""
    return [
        (
            chain.best.hash,
            chain.finalized.hash,
            [sorted(chain.hashes_at(number)) for number in range(chain.best.number + 4)],
            [chain.block(chain.hash_of(number)).extrinsics for number in range(chain.best.number + 1)],  # type: ignore[union-attr, arg-type]
            [dict(chain.state_at(it).pairs()) for it in chain._tree._blocks],
            chain.prove(chain.best.hash, [b"a"]),
            chain.pool.pending(),
            chain.pool.futures(),
            dict(chain.pool._banned_until),
            chain._state.snapshot(),
        )
        for chain in live.served()
    ] + [live.snapshots, live.block_time, live.time.offset]


def transfer(live: ChainClock, sender: int, nonce: int | None) -> None:
    pair, other = (ALICE, BOB)[sender], (BOB, ALICE)[sender]
    call = modelled(live.relay).runtime.encode_call(
        "Balances", "transfer_keep_alive", dest=address(other), value=10**10
    )
    live.relay.submit(signed(live.relay, pair, call, nonce=nonce))


def back_to(live: ChainClock, back: int) -> None:
    found = live.relay.hash_of(max(0, live.relay.best.number - back))
    assert found is not None
    live.set_head(live.relay, found)


INPUTS: list[Callable[[ChainClock, Random], Any]] = [
    lambda live, _: live.new_block(),
    lambda live, _: live.new_block(),
    lambda live, random: transfer(live, random.randrange(2), None),
    lambda live, random: transfer(live, random.randrange(2), random.randrange(6)),
    lambda live, random: live.set_storage(
        random.choice([None, PUBLISHER]), {bytes([random.randrange(4)]): random.choice([None, b"v"])}
    ),
    lambda live, random: live.publish(PUBLISHER, bytes(31) + bytes([random.randrange(3)]), b"value"),
    lambda live, random: live.travel(live.time.of_block(live.relay.best.number + random.randrange(3))),
    lambda live, random: back_to(live, random.randrange(4)),
    lambda live, _: live.snapshot(),
    lambda live, random: live.revert(random.choice([*live.snapshots, 0])),
    lambda live, random: live.relay.remove([extrinsic_hash(it) for it in live.relay.pool.pending()[:1]]),
    lambda live, random: setattr(live, "block_time", random.choice([0.5, "manual", "instant"])),
]

REFUSALS = (PoolError, CannotGoBack, UnknownBlock, LookupError, ValueError)


def history(file: Path, random: Random, count: int) -> dict[int, Any]:
    """Let random inputs come, and return what the chains were after each number of entries."""
    live = kept(file)
    told = {entries(file): fingerprint(live)}
    for _ in range(count):
        try:
            random.choice(INPUTS)(live, random)
        except REFUSALS:
            assert entries(file) not in told or fingerprint(live) == told[entries(file)]
        told[entries(file)] = fingerprint(live)
    stop(live)
    return told


def entries(file: Path) -> int:
    return len(list(whole_frames(file.read_bytes())))


def expected_after(file: Path, told: dict[int, Any]) -> Any:
    """Return what chains must be that go on from ``file``: where its last entry is a tick, they are behind it."""
    found = list(whole_frames(file.read_bytes()))
    count = len(found)
    return told[count + 1 if found and isinstance(found[-1].entry, TickEntry) else count]


def test_a_small_history_goes_on_from_every_byte_at_which_it_can_be_cut(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    live = kept(whole)
    told = {0: fingerprint(live)}
    for give in (INPUTS[2], INPUTS[0], INPUTS[5], INPUTS[0]):
        give(live, Random(1))
        told[entries(whole)] = fingerprint(live)
    stop(live)
    data = whole.read_bytes()
    done = None
    for length in range(len(data) + 1):
        cut.write_bytes(data[:length])
        wanted = expected_after(cut, told)
        if wanted is done and length < len(data):
            continue  # in the middle of a frame: ``test_frames`` reads these
        again = kept(cut)
        assert fingerprint(again) == wanted
        stop(again)
        done = wanted
    assert len(told) == 5


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.floats(0, 1), min_size=2, max_size=2))
@settings(max_examples=examples(12), deadline=None)
def test_random_histories_go_on_from_any_byte(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    file, cut = folder / "whole", folder / "cut"
    told = history(file, Random(seed), 25)
    data = file.read_bytes()
    for part in (*cuts, 1.0):
        cut.write_bytes(data[: int(part * len(data))])
        wanted = expected_after(cut, told)
        live = kept(cut)
        assert fingerprint(live) == wanted
        live.new_block()
        after = fingerprint(live)
        stop(live)
        again = kept(cut)
        assert fingerprint(again) == after
        stop(again)


def test_ticks_that_a_checkpoint_has_forgotten_pass_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "TICKS_OF_A_CHECKPOINT", 3)
    told = history(tmp_path / "j", Random(7), 60)
    live = kept(tmp_path / "j")
    assert fingerprint(live) == told[max(told)]
    stop(live)


def test_a_block_that_is_told_as_final_survives_a_loss_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, safe = tmp_path / "j", [0]
    sync = os.fdatasync

    def note_sync(handle: int) -> None:
        sync(handle)
        safe.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, "fdatasync", note_sync)
    live = kept(file)
    for chain in live.served():
        chain.finality_lag = 0
    told: list[tuple[int | None, bytes, int]] = []
    for chain in live.served():

        def hear(final: Finality, para_id: int | None = chain.para_id) -> None:
            told.append((para_id, final.block.hash, safe[-1]))

        chain.finalized_heads.connect(hear)
    for _ in range(4):
        transfer(live, 0, None)
        live.new_block()
    stop(live)
    data = file.read_bytes()
    assert len(told) > 8
    for para_id, block_hash, length in told:
        file.write_bytes(data[:length])
        again = kept(file)
        assert again.chain(para_id).block(block_hash) is not None
        stop(again)


def test_a_submission_is_in_the_file_before_its_watcher_hears_of_it(tmp_path: Path) -> None:
    file = tmp_path / "j"
    live = kept(file)
    call = modelled(live.relay).runtime.encode_call("System", "remark", remark=b"x")
    data = signed(live.relay, ALICE, call)
    there: list[bool] = []
    live.relay.pool.watch(extrinsic_hash(data), lambda _: there.append(data in file.read_bytes()))
    live.relay.submit(data)
    assert there == [True]
    stop(live)


def test_a_submission_while_a_tick_passes_comes_at_the_same_block_again(tmp_path: Path) -> None:
    file = tmp_path / "j"
    live = kept(file)
    call = modelled(live.parachains[READER]).runtime.encode_call("System", "remark", remark=b"x")
    reader = live.parachains[READER]
    data = signed(reader, ALICE, call)

    def hear(_: ServedBlock) -> None:
        end()
        reader.submit(data)

    end = reader.new_heads.connect(hear)
    live.new_block(2)
    told = fingerprint(live)
    assert data in reader.best.extrinsics
    stop(live)
    again = kept(file)
    assert fingerprint(again) == told
    stop(again)


def test_what_is_refused_and_leaves_no_trace_leaves_no_entry(tmp_path: Path) -> None:
    file = tmp_path / "j"
    live = kept(file)
    data = submit(live.relay, ALICE, "System", "remark", remark=b"x")
    before = file.read_bytes()
    for refused in (
        lambda: live.relay.submit(data),
        lambda: live.relay.submit(b"\x08ab"[:2]),
        lambda: live.set_storage(None, {b":child_storage:default:x": b""}),
        lambda: live.publish(PUBLISHER, b"short", b""),
        lambda: live.set_head(live.relay, bytes(32)),
        lambda: live.travel(0),
        lambda: live.revert(9),
        lambda: setattr(live, "block_time", -1.0),
    ):
        with pytest.raises((*REFUSALS,)):
            refused()
        assert file.read_bytes() == before
    stop(live)


def test_a_ban_lasts_as_long_as_it_would_without_the_restart(tmp_path: Path) -> None:
    clock = Clock()
    live = kept(tmp_path / "j", clock)
    data = submit(live.relay, ALICE, "System", "remark", remark=b"x")
    live.relay.remove([extrinsic_hash(data)])
    stop(live)
    live = kept(tmp_path / "j", clock)
    clock.seconds += BAN_SECONDS - 1
    with pytest.raises(TemporarilyBanned):
        live.relay.submit(data)
    clock.seconds += 2
    live.relay.submit(data)
    stop(live)
    live = kept(tmp_path / "j", clock)
    assert live.relay.pool.pending() == [data]
    stop(live)


def test_on_a_full_disk_nothing_happens_and_later_all_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = kept(tmp_path / "j")
    live.new_block()
    before, data = fingerprint(live), (tmp_path / "j").read_bytes()
    write = os.pwrite

    def half(handle: int, given: bytes, at: int) -> int:
        if len(given) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, given[: len(given) // 2], at)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        for give in (INPUTS[0], INPUTS[2], INPUTS[4], INPUTS[5], INPUTS[8]):
            with pytest.raises(NotNoted, match="j cannot be written: no space left on device"):
                give(live, Random(1))
            assert (fingerprint(live), (tmp_path / "j").read_bytes()) == (before, data)
    live.new_block()
    after = fingerprint(live)
    stop(live)
    again = kept(tmp_path / "j")
    assert fingerprint(again) == after
    stop(again)


def test_chains_that_build_other_blocks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = kept(tmp_path / "j")
    live.new_block(3)
    stop(live)
    _, frames = InputJournal.open(tmp_path / "j")
    other = live_chains()
    other.time.offset = 1
    with pytest.raises(OtherChains, match="the blocks of relay block 1 are others than they were"):
        JournalReplay(other).run(frames)


def test_a_journal_that_cannot_be_synced_takes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = kept(tmp_path / "j")

    def broken(_handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", broken)
        with pytest.raises(NotNoted, match="input/output error"):
            live.new_block()
    with pytest.raises(NotNoted, match="input/output error"):
        live.new_block()
    assert live.relay.best.number == 0
