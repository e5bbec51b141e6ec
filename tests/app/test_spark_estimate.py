"""What a run on Spark is told to take, and how it is spread."""

import itertools
from dataclasses import replace as with_fields
from pathlib import Path

import pytest
from msgspec.structs import replace

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.spark import resumable
from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation import run_estimate
from relaycast.simulation.run_estimate import PROBE_SHARE, START_SECONDS, estimated, of_rate
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.spark_engine import SparkOptions, chosen_way
from relaycast_xcm import ParaId

MANY = Simulation.prepare(
    Scenario(
        name="many",
        blocks=9,
        parachains=[
            ParachainTable(id=2000, publish=PublishTable(keys=2)),
            *(ParachainTable(id=3000 + it, subscribe=[SubscriptionTable(publisher=2000)]) for it in range(18)),
        ],
    )
)
READERS = {ParaId(3000 + it): 0.05 for it in range(18)}
"""Eighteen equal readers take nine tenths of the time."""

ESTIMATE = of_rate(1_000, 0.1, 0.0, readers=READERS)


def test_a_run_that_is_shorter_than_the_start_of_spark_is_faster_without() -> None:
    short, long = of_rate(100, 0.01, 0.5), of_rate(10_000, 0.01, 0.5)
    assert (short.local, short.spark) == (1.5, 0.5 + START_SECONDS + 0.5)
    assert short.local < short.spark
    assert long.local > long.spark
    assert str(of_rate(400, 0.1, 0.0)) == ("--engine local would take about 40 s, --engine spark takes 27 s or more")


def test_blocks_that_are_tried_again_count_and_readers_share_the_rest() -> None:
    one, many = (of_rate(100, 0.1, 0.0, probed=20, readers=readers) for readers in (None, READERS))
    assert (one.local, one.spark) == (12, START_SECONDS + 5)
    assert many.local == 12
    assert many.spark == pytest.approx(START_SECONDS + 2)


@pytest.mark.parametrize(("step", "seen"), [(0.3, 5), (0.9, 3), (0.01, 41)])
def test_the_look_stops_where_it_takes_long(step: float, seen: int) -> None:
    """By a clock that goes on by a ``step`` whenever it is read: so many of 60 blocks are seen after the first one."""
    read = itertools.count()

    def clock() -> float:
        return next(read) * step

    estimate = estimated(load_preset("oracle"), clock=clock)
    assert next(read) == 2 + seen
    expected = of_rate(59, step, step, probed=PROBE_SHARE * 24, readers=estimate.readers)
    assert (estimate.local, estimate.spark) == pytest.approx((expected.local, expected.spark))
    assert estimated(replace(load_preset("oracle"), blocks=1), clock=clock).local == pytest.approx(step)


def test_readers_of_many_keys_take_the_larger_part_of_a_block() -> None:
    parts = estimated(load_preset("oracle")).readers
    assert {int(para_id) for para_id in parts} == {it.id for it in load_preset("oracle").subscribers()}
    assert 0 < sum(parts.values()) < 1
    assert parts[ParaId(3000)] > parts[ParaId(3001)], "50 keys against ten"


@pytest.mark.parametrize(
    ("cores", "workers", "why"),
    [
        (1, 1, "at most 0.7 times as fast as one process, readers side by side 1.0 times"),
        (2, 2, "1.8 times as fast as one process, segments at most 1.3 times"),
        (4, 4, "2.9 times as fast as one process, segments at most 2.0 times"),
        (64, 18, "6.7 times as fast as one process, segments at most 2.0 times"),
    ],
)
def test_many_readers_are_shared_out_as_far_as_there_are_cores(cores: int, workers: int, why: str) -> None:
    way = chosen_way(MANY, SparkOptions(estimate=ESTIMATE), cores=cores)
    assert (way.workers, way.why) == (workers, why)


def test_one_large_reader_is_not_worth_sharing_out() -> None:
    large = dict.fromkeys(READERS, 0.003) | {ParaId(3000): 0.85}
    way = chosen_way(MANY, SparkOptions(estimate=with_fields(ESTIMATE, readers=large)), cores=8)
    assert (way.workers, way.why) == (1, "at most 2.0 times as fast as one process, readers side by side 1.0 times")


@pytest.mark.parametrize(
    ("options", "left", "workers", "why"),
    [
        (SparkOptions(workers=3), 0, 3, "--workers 3"),
        (SparkOptions(workers=1), 0, 1, "--workers 1"),
        (SparkOptions(segments_for="--keep-proofs"), 0, 1, "--keep-proofs"),
        (SparkOptions(), 1_200, 1, "an earlier run left 1,200 blocks"),
        (SparkOptions(estimate=None), 0, 1, "the number of cores or their gain is not known"),
    ],
)
def test_what_is_asked_for_and_what_was_left_come_first(
    options: SparkOptions, left: int, workers: int, why: str
) -> None:
    estimate = ESTIMATE if options.segments_for or options.workers or left else None
    way = chosen_way(MANY, with_fields(options, estimate=estimate), cores=8, left=left)
    assert (way.workers, way.why) == (workers, why)
    assert way.resumes == (workers == 1)


def test_one_line_says_how_a_run_is_spread_and_whether_it_resumes() -> None:
    ways = [chosen_way(MANY, SparkOptions(workers=workers), cores=8) for workers in (1, 3)]
    assert [str(way) for way in ways] == [
        "spread by segments, a run that is stopped resumes: --workers 1",
        "spread by readers side by side in 3 processes, a run that is stopped starts over: --workers 3",
    ]
    assert chosen_way(MANY, SparkOptions(estimate=ESTIMATE), cores=None).resumes


def test_a_stopped_run_is_said_to_continue_only_where_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> ExitCode:
        raise KeyboardInterrupt

    assert resumable(stopped) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "relaycast: interrupted, the same command goes on from here\n"
    with pytest.raises(KeyboardInterrupt):
        resumable(stopped, lambda: False)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("told", [True, False])
def test_the_line_is_said_before_spark_starts_where_it_holds(
    told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relaycast.simulation.spark_engine.simulate_with_spark", stopped)
    monkeypatch.setattr("relaycast_spark.session.require_spark", lambda: None)
    if not told:
        monkeypatch.setattr(run_estimate, "START_SECONDS", -1_000.0)  # Spark is there already, and more
    execute(["run", "oracle", "--blocks", "5", "--engine", "spark", "--out", str(tmp_path)])
    said = capsys.readouterr().err
    assert ("--engine local would take about" in said) == told
