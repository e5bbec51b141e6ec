"""The walk in arrays with one passage changed: a block notices."""

import json
import os
import subprocess
import sys

import pytest

from rooms import ROOT

BY_THE_PASS = {
    "order: a node that went is still kept",
    "prefix: an old node that is not kept is not noted",
    "prefix: an old node that is not kept is noted as kept",
}
"""Mutants that no block of the specification shows: the plain pass finds something else, or the next block does."""


@pytest.mark.slow
def test_each_mutant_of_the_walk_is_noticed() -> None:
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "walk_mutants.py")]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    noticed = json.loads(ended.stdout)
    assert noticed.pop("the kernel as it is") == ""
    assert {name for name, by in noticed.items() if not by} == set()
    assert {name for name, by in noticed.items() if by.startswith("plain")} == BY_THE_PASS
