"""What tests of histories share: a log, in memory and in a file, and its clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.log import EventLog


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_770_000_000 * SECOND)


@pytest.fixture(params=["memory", "file"])
def log(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock) -> Iterator[EventLog]:
    with EventLog.open(tmp_path / "log" if request.param == "file" else None, clock=clock) as opened:
        yield opened
