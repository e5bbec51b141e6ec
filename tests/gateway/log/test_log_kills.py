"""A process that appends is killed at any moment: what it acknowledged is in the log, in dense order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from gateway.log.appender import CHAINS, THREADS, namespace
from long_hauls import soak
from relaycast_gateway.log import EventLog

KILLS_A_ROUND = 4
"""Kills of processes that go on in one file."""

LONGEST_LIFE = 0.7
"""Seconds from the opening of the log to the kill."""


class Acknowledged(NamedTuple):
    """A line of the process."""

    thread: int
    first: int
    seq: int
    length: int


def killed(path: Path, seed: str, count_kept: int, seconds: float) -> list[Acknowledged]:
    """Let a process append for so long, kill it, and return what it acknowledged."""
    command = [sys.executable, str(Path(__file__).with_name("appender.py")), str(path), seed, str(count_kept)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n", process.communicate()
        os.set_blocking(process.stdout.fileno(), False)
        told, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            told += process.stdout.read() or b""
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.set_blocking(process.stdout.fileno(), True)
        told += process.stdout.read()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    lines = told[: told.rfind(b"\n") + 1].splitlines()
    return [Acknowledged(*map(int, line.split())) for line in lines]


def check(path: Path, acknowledged: list[Acknowledged], count_kept: int) -> int:
    """Check what the log holds, and return how many events it has had."""
    with EventLog.open(path) as log:
        records = log.read(limit=1 << 40)
        assert [record.seq for record in records] == list(range(log.history_start, log.last_seq + 1))
        assert not count_kept or len(records) <= count_kept
        by_seq = {record.seq: record for record in records}
        for thread, first, seq, length in acknowledged:
            for at in range(length):
                if seq + at >= log.history_start:
                    assert by_seq[seq + at].namespace == namespace(thread)
                    assert by_seq[seq + at].data.content[0].content == first + at
        for thread in range(THREADS + CHAINS):
            own = [record for record in records if record.namespace == namespace(thread)]
            numbers = [record.data.content[0].content for record in own]
            assert numbers == list(range(numbers[0], numbers[0] + len(own))) if own else True
            assert [record.prev_id for record in own[1:]] == [record.event_id for record in own[:-1]]
        assert max((it.seq + it.length - 1 for it in acknowledged), default=0) <= log.last_seq
        return log.last_seq


def survive(folder: Path, seed: int, told: Callable[[str, object], None] | None = None) -> None:
    """Kill processes that append to one log; ``told`` takes note of how much they did."""
    draw, path = Random(seed), folder / "events.sqlite"
    count_kept = draw.choice([0, 0, 500])
    acknowledged: list[Acknowledged] = []
    last_seq = 0
    for life in range(KILLS_A_ROUND):
        acknowledged += killed(path, f"{seed} {life}", count_kept, draw.random() * LONGEST_LIFE)
        now = check(path, acknowledged, count_kept)
        assert now >= last_seq
        last_seq = now
    assert last_seq > 0
    if told is not None:
        told("kills", f"events of a log of {KILLS_A_ROUND} lives: about 10^{len(str(last_seq)) - 1}")


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    survive(tmp_path, seed=-1)


@soak(rounds=50)
def test_what_was_acknowledged_survives_any_kill(
    tmp_path: Path, soak_round: int, record_property: Callable[[str, object], None]
) -> None:
    survive(tmp_path, soak_round, record_property)
