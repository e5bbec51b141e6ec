"""A batch run that relaycast 0.1.0 began is completed from the segments that it left, with the bytes of a whole run."""

from pathlib import Path

import pytest

from older_folders import unpacked
from relaycast.simulation.run_files import simulate
from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark
from spark.scenarios import MARKET, contents

pytestmark = pytest.mark.usefixtures("spark")


class Begun:
    """Notes how many blocks a stage had when it began."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        self.done[stage] = done

    def advance(self, stage: str, rows: int) -> None: ...


def test_a_run_that_an_older_version_began_is_completed_from_its_segments(tmp_path: Path) -> None:
    expected = contents(simulate(MARKET, out=tmp_path / "local").folder)
    out, begun = unpacked("batch", tmp_path), Begun()
    completed = simulate_with_spark(MARKET, out=out, options=SparkOptions(), progress=begun).folder
    assert begun.done["replayed"] == 13  # four of five segments
    assert contents(completed) == expected
    assert [path.name for path in out.iterdir()] == [completed.name]
