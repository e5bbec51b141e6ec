"""Sovereign accounts: those that Polkadot's runtime gives to locations."""

import pytest

from relaycast_xcm import (
    AccountId32,
    AccountKey20,
    ByGenesis,
    GeneralIndex,
    Junction,
    Location,
    NetworkName,
    OnlyChild,
    PalletInstance,
    Parachain,
    Plurality,
    sovereign_account,
)
from relaycast_xcm.location import BodyName, BodyVoice

ALICE = bytes([1]) * 32
INSIDE = Parachain(1_111)
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def account_of(ss58: str) -> bytes:
    """Return the account that an SS58 address names: one byte of prefix, 32 of account, two of checksum."""
    number = 0
    for letter in ss58:
        number = number * 58 + BASE58.index(letter)
    return number.to_bytes(35, "big")[1:33]


@pytest.mark.parametrize(
    ("junctions", "address"),
    [
        ((), "5Ec4AhP4h37t7TFsAZ4HhFq6k92usAAJDUC3ADSZ4H4Acru3"),
        ((PalletInstance(50),), "5FjEBrKn3STAFsZpQF4jzwxUYHNGnNgzdZqSQfTzeJ82XKp6"),
        ((AccountId32(None, ALICE),), "5D6CDyPd9Mya81xFN3nChiKqLvUzd8zS9fwKhfCW6FtJKjS2"),
        ((AccountKey20(None, bytes([123]) * 20),), "5DEZsy7tsnNXB7ehLGkF8b4EUqfLQWqEzGiy2RrneC8uRNMK"),
        ((Plurality(BodyName.TREASURY, BodyVoice.VOICE),), "5GenE4vJgHvwYVcD6b4nBvH5HNY4pzpVHWoqwFpNMFT7a2oX"),
        ((Plurality(BodyName.UNIT, BodyVoice.VOICE),), "5DPgGBFTTYm1dGbtB1VWHJ3T3ScvdrskGGx6vSJZNP1WNStV"),
    ],
)
def test_a_location_has_the_account_of_polkadots_own_test(junctions: tuple[Junction, ...], address: str) -> None:
    """The expected addresses are those of polkadot-fellows/runtimes, relay/polkadot/tests/location_conversion.rs."""
    assert sovereign_account(Location.new(0, (INSIDE, *junctions))) == account_of(address)


@pytest.mark.parametrize("network", [None, NetworkName.POLKADOT])
def test_an_account_controls_itself(network: NetworkName | None) -> None:
    assert sovereign_account(Location.new(0, AccountId32(network, ALICE))) == ALICE


@pytest.mark.parametrize(
    "location",
    [
        Location.here(),
        Location.parent(),
        Location.sibling(2_000),  # the relay chain has no siblings
        Location.new(0, AccountId32(NetworkName.KUSAMA, ALICE)),  # an account of another network
        Location.new(0, AccountId32(ByGenesis(ALICE), ALICE)),
        Location.new(0, (INSIDE, GeneralIndex(1))),
        Location.new(0, (INSIDE, OnlyChild())),
        Location.new(0, (INSIDE, AccountId32(None, ALICE), PalletInstance(1))),
    ],
)
def test_other_locations_control_no_account(location: Location) -> None:
    assert sovereign_account(location) is None
