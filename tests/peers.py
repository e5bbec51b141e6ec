"""Programs beside the project that some tests need: Java, Chromium, node and an oracle from npm.

Where one is missing, its tests are skipped with the reason. They fail instead where ``RELAYCAST_REQUIRE_PEERS=1``, as
``.ci/run`` sets it after it has installed all of them.
"""

import os
from typing import NoReturn

import pytest

REQUIRED = "RELAYCAST_REQUIRE_PEERS"


def missing(reason: object) -> NoReturn:
    """Skip the test that runs, or fail it where peers are required."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{reason}; {REQUIRED} is set")
    pytest.skip(str(reason))
