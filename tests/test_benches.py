"""The benches that users are pointed at run."""

import json
import subprocess
import sys

import pytest

from rooms import ROOT


@pytest.mark.slow
def test_the_bench_of_a_subscriber_measures_blocks_that_hold() -> None:
    bench = ROOT / "benches" / "bench_subscriber.py"
    ended = subprocess.run([sys.executable, bench, "--blocks", "5"], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1])["callbacks"] == 50


@pytest.mark.slow
def test_the_bench_of_a_long_served_chain_says_what_it_holds() -> None:
    bench = ROOT / "benches" / "bench_long_serve.py"
    given = [sys.executable, str(bench), "--blocks", "40", "--keep", "512"]
    ended = subprocess.run(given, capture_output=True, text=True, check=True)
    assert len(ended.stdout.splitlines()) == 11
