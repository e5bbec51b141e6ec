"""No accepted input stops a server: poisons between blocks, and a start from what they left."""

from pathlib import Path

import pytest

from app.poisons import withstand


def test_a_hundred_poisons_stop_neither_the_server_nor_the_next_start(tmp_path: Path) -> None:
    outcomes = withstand(tmp_path, 100, seed=1, a_tick=6)
    assert outcomes["dev_setStorage taken"] > 10
    assert outcomes["dev_setStorage refused"] > 10
    assert outcomes["slipped in"] > 0
    assert (tmp_path / "chains" / "dropped.jsonl").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_ten_thousand_poisons_stop_neither_the_server_nor_the_next_start(tmp_path: Path, seed: int) -> None:
    withstand(tmp_path, 2_000, seed=seed, a_tick=20)
