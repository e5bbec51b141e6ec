"""What the pallet tests share: a relay chain."""

import pytest

from pallets.relay import Relay


@pytest.fixture
def relay() -> Relay:
    return Relay()
