"""Short runs on Spark are told that they would be faster without it."""

import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace

from relaycast.cli.command import execute
from relaycast.scenario.files import load_preset
from relaycast.simulation import spark_estimate
from relaycast.simulation.spark_estimate import PROBE_SHARE, START_SECONDS, estimated, of_rate


def test_a_run_that_is_shorter_than_the_start_of_spark_is_faster_without() -> None:
    short, long = of_rate(100, 0.01, 0.5), of_rate(10_000, 0.01, 0.5)
    assert (short.local, short.spark) == (1.5, 0.5 + START_SECONDS + 0.5)
    assert short.local < short.spark
    assert long.local > long.spark
    assert str(of_rate(400, 0.1, 0.0)) == ("--engine local would take about 40 s, --engine spark takes 27 s or more")


def test_blocks_that_are_tried_again_count_and_workers_share_the_rest() -> None:
    one, two = (of_rate(100, 0.1, 0.0, probed=20, workers=workers) for workers in (1, 2))
    assert (one.local, one.spark) == (12, START_SECONDS + 7)
    assert (two.local, two.spark) == (12, START_SECONDS + 5)


@pytest.mark.parametrize(("step", "seen"), [(0.3, 5), (0.9, 3), (0.01, 41)])
def test_the_look_stops_where_it_takes_long(step: float, seen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by a ``step`` whenever it is read: so many of 60 blocks are seen after the first one."""
    read = itertools.count()
    monkeypatch.setattr(spark_estimate, "clock", lambda: next(read) * step)
    estimate = estimated(load_preset("oracle"))
    assert next(read) == 2 + seen
    expected = of_rate(59, step, step, probed=PROBE_SHARE * 24)
    assert (estimate.local, estimate.spark) == pytest.approx((expected.local, expected.spark))
    assert estimated(replace(load_preset("oracle"), blocks=1)).local == pytest.approx(step)


@pytest.mark.parametrize("told", [True, False])
def test_the_line_is_said_before_spark_starts_where_it_holds(
    told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relaycast.simulation.spark_engine.simulate_with_spark", stopped)
    monkeypatch.setattr("relaycast_spark.session.require_spark", lambda: None)
    if not told:
        monkeypatch.setattr(spark_estimate, "START_SECONDS", -1_000.0)  # Spark is there already, and more
    execute(["run", "oracle", "--blocks", "5", "--engine", "spark", "--out", str(tmp_path)])
    said = capsys.readouterr().err
    assert ("--engine local would take about" in said) == told
