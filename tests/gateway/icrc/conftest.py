"""What tests of a subscriber start from."""

import pytest

from gateway.icrc.notifier import Desk


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.subscribe()
    return desk
