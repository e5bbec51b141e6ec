"""A block's time is set once, by an inherent, and never runs backwards."""

import pytest

from pallets.relay import ALICE
from relaycast_pallets import BadOrigin, Origin, State, System
from relaycast_pallets.timestamp import MINIMUM_PERIOD, Timestamp, TimestampInvalid

GENESIS = 1_700_000_000_000


@pytest.fixture
def timestamp() -> Timestamp:
    timestamp = Timestamp(System(State()))
    timestamp.set(Origin.none(), GENESIS)
    return timestamp


def test_the_time_is_stored_as_eight_bytes_and_the_flag_goes_with_the_block(timestamp: Timestamp) -> None:
    items = timestamp.system.state.snapshot()[0]
    assert sorted(items.values()) == [bytes.fromhex("0068e5cf8b010000"), b"\x01"]
    timestamp.on_finalize()
    assert list(timestamp.system.state.snapshot()[0].values()) == [bytes.fromhex("0068e5cf8b010000")]
    assert timestamp.now == GENESIS


def test_the_next_block_is_half_a_slot_later_or_more(timestamp: Timestamp) -> None:
    timestamp.on_finalize()
    with pytest.raises(TimestampInvalid, match="must be at least 1700000003000, got 1700000002999"):
        timestamp.set(Origin.none(), GENESIS + MINIMUM_PERIOD - 1)
    assert timestamp.set(Origin.none(), GENESIS + MINIMUM_PERIOD) == timestamp.weight("set")
    assert timestamp.now == GENESIS + MINIMUM_PERIOD


def test_a_block_has_one_time(timestamp: Timestamp) -> None:
    with pytest.raises(TimestampInvalid, match="set already"):
        timestamp.set(Origin.none(), GENESIS + 6_000)
    timestamp.on_finalize()
    with pytest.raises(TimestampInvalid, match="is not set"):
        timestamp.on_finalize()


@pytest.mark.parametrize("origin", [Origin.root(), Origin.signed(ALICE), Origin.parachain(2_000)])
def test_nobody_else_sets_it(timestamp: Timestamp, origin: Origin) -> None:
    timestamp.on_finalize()
    with pytest.raises(BadOrigin, match="expected none"):
        timestamp.set(origin, GENESIS + 6_000)


@pytest.mark.parametrize("now", [-1, 2**64])
def test_a_time_is_a_u64(now: int) -> None:
    with pytest.raises(ValueError, match="u64"):
        Timestamp(System(State())).set(Origin.none(), now)
