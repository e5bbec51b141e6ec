"""The driver is killed while Spark starts: no process of it is left, whatever the moment."""

import os
import random
import subprocess
import sys
import time
from uuid import uuid4

import pytest

from long_hauls import soak
from peers import missing
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import require_spark
from spark.left_processes import MARK, ends

START = """
from relaycast_spark.session import SessionSettings, spark_session
with spark_session(SessionSettings(master="local[1]")):
    print("started", flush=True)
    input()
"""


def started(mark: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, MARK: mark}
    return subprocess.Popen(
        [sys.executable, "-c", START], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_driver_that_is_killed_while_spark_starts_leaves_no_process_behind() -> None:
    nothing_is_left_behind(kills=4, chance=random.Random(15))


@soak(rounds=5)
def test_a_driver_that_is_killed_at_any_moment_of_the_start_leaves_no_process_behind(soak_round: int) -> None:
    nothing_is_left_behind(kills=10, chance=random.Random(soak_round))


def nothing_is_left_behind(*, kills: int, chance: random.Random) -> None:
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    mark, before = uuid4().hex, time.monotonic()
    with started(mark) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        seconds = time.monotonic() - before
        process.kill()
    assert ends(mark), "killed when Spark ran"
    for number in range(kills):
        mark, moment = uuid4().hex, seconds * (number + chance.random()) / kills
        with started(mark) as process:
            time.sleep(moment)
            process.kill()
        assert ends(mark), f"killed after {moment:.2f} of {seconds:.2f} s"
