"""Runs on Spark come to what is recorded of runs in one process."""

from pathlib import Path

import pytest

import run_digests

CASES = {name: given for name, given in run_digests.cases().items() if name != "many-keys"}
"""``many-keys`` at full length has checkpoints for which the 1 GB that Spark gives its driver is too little."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("name", CASES)
def test_a_run_on_spark_comes_to_what_is_recorded(name: str, tmp_path: Path) -> None:
    now = run_digests.run(CASES[name], tmp_path, "--engine", "spark", "--segment-blocks", "5")
    assert run_digests.differences(now, run_digests.stored()[name]["parts"]) == []
