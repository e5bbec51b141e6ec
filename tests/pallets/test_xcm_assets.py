"""Accounts, prices and traps for messages: what a chain's state gives to the executor."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.relay import ALICE, BOB, Relay, refused
from relaycast_pallets import InsufficientBalance
from relaycast_pallets.asset_traps import AssetsTrapped, AssetTraps, trap_of
from relaycast_pallets.xcm import (
    CENT,
    EXTRINSIC_BASE,
    AccountIdConversionFailed,
    FeesToAuthor,
    FungibleAdapter,
    WeightToFee,
)
from relaycast_trie import RelaycastError, blake2_256
from relaycast_xcm import Asset, Location, Weight
from relaycast_xcm.exceptions import AssetNotFound, TooExpensive
from relaycast_xcm.registry import scale_encode

HERE, TOKEN, PARA = Location.here(), Location.parachain(1_000), Location.parachain(2_000)
PARTS = Fraction(102_826_706, 1_000_000_000)
"""A tenth of a cent for the base weight of an extrinsic, as parts of a billion rounded down."""


@given(st.integers(0, 2**64 - 1))
def test_a_fee_is_the_price_of_time_rounded_half_down(ref_time: int) -> None:
    exact = ref_time * PARTS
    fee = WeightToFee().fee(Weight(ref_time, 1_000))
    assert abs(fee - exact) <= Fraction(1, 2)
    assert fee - exact != Fraction(1, 2), "a half is rounded down"


def test_an_extrinsic_that_does_nothing_costs_a_tenth_of_a_cent() -> None:
    assert WeightToFee().fee(EXTRINSIC_BASE) == CENT // 10
    assert WeightToFee(Weight(10), 250).fee(Weight(7, 99)) == 17  # 2.5 planck each: 14 and half of 7, rounded down


@pytest.mark.parametrize(
    ("asset", "who", "error"),
    [
        (Asset.fungible(TOKEN, 1), Location.account(ALICE), AssetNotFound),
        (Asset.fungible(HERE, 1), Location.parent(), AccountIdConversionFailed),
        (Asset.fungible(HERE, 10_001), Location.account(ALICE), InsufficientBalance),
    ],
)
def test_what_cannot_be_moved_moves_nothing(
    relay: Relay, asset: Asset, who: Location, error: type[RelaycastError]
) -> None:
    adapter = FungibleAdapter(relay.balances)
    with refused(relay, error):
        adapter.withdraw(asset, who)
    with refused(relay, error):
        adapter.transfer(asset, who, Location.account(BOB))
    if error is not InsufficientBalance:
        with refused(relay, error):
            adapter.deposit(asset, who)


def test_accounts_are_those_of_locations(relay: Relay) -> None:
    adapter = FungibleAdapter(relay.balances)
    adapter.withdraw(Asset.fungible(HERE, 70), Location.account(ALICE))
    adapter.deposit(Asset.fungible(HERE, 50), PARA)
    adapter.transfer(Asset.fungible(HERE, 30), PARA, Location.account(BOB))
    sovereign = b"para" + (2_000).to_bytes(4, "little") + bytes(24)
    assert [relay.free(account) for account in (ALICE, sovereign, BOB)] == [9_930, 20, 10_030]
    assert relay.balances.total_issuance == 30_000 - 20


def test_an_author_earns_what_was_not_refunded(relay: Relay) -> None:
    trader = FeesToAuthor(relay.balances, BOB, WeightToFee(Weight(1), 20))()
    assert trader.buy_weight(Weight(100), Asset.fungible(HERE, 250)) == (Asset.fungible(HERE, 50),)
    assert trader.buy_weight(Weight(10), Asset.fungible(HERE, 20)) == ()
    assert trader.refund_weight(Weight(30)) == Asset.fungible(HERE, 60)
    assert trader.refund_weight(Weight(0, 9)) is None
    for payment in (Asset.fungible(HERE, 19), Asset.fungible(TOKEN, 20)):
        with pytest.raises(TooExpensive):
            trader.buy_weight(Weight(10), payment)
    trader.settle()
    trader.settle()
    assert relay.free(BOB) == 10_160


def test_who_bought_nothing_is_refunded_nothing(relay: Relay) -> None:
    trader = FeesToAuthor(relay.balances, BOB)()
    assert trader.refund_weight(Weight(1_000_000)) is None
    trader.settle()
    assert (relay.free(BOB), list(relay.system.events)) == (10_000, [])


def test_a_trap_counts_what_is_left_behind_again(relay: Relay) -> None:
    traps, left = AssetTraps(relay.system), (Asset.fungible(HERE, 5),)
    for _ in range(2):
        traps.drop_assets(PARA, left)
    traps.drop_assets(TOKEN, left)
    described = [{"id": HERE.to_json(), "fun": {"Fungible": 5}}]
    versioned = scale_encode("LocationV5", PARA.to_json()) + b"\x05" + scale_encode("AssetsV5", described)
    assert trap_of(PARA, left) == blake2_256(versioned)
    assert [traps.count.get(trap_of(origin, left)) for origin in (PARA, TOKEN, HERE)] == [2, 1, None]
    assert next(iter(relay.system.events)) == AssetsTrapped(trap_of(PARA, left), PARA, "5 of Here")
