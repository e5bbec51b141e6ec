"""Accounts with their nonces and references, remarks, and the last event of an extrinsic."""

import pytest

from pallets.relay import ALICE, BOB
from relaycast_pallets import BadOrigin, DispatchError, Origin, State, System
from relaycast_pallets.balances import Balances
from relaycast_pallets.frame.account import AccountData, AccountInfo
from relaycast_pallets.frame.dispatch import (
    ConsumerRemaining,
    DispatchClass,
    DispatchInfo,
    NoProviders,
    Pays,
    PostDispatchInfo,
)
from relaycast_pallets.frame.system import (
    ExtrinsicFailed,
    ExtrinsicSuccess,
    KilledAccount,
    NewAccount,
    Remarked,
)
from relaycast_trie import blake2_256
from relaycast_xcm.primitives import Weight
from shared_vectors import Case, over, unhex


@pytest.fixture
def system() -> System:
    return System(State())


def test_a_nonce_counts_and_a_balance_leaves_it_alone(system: System) -> None:
    balances = Balances(system)
    balances.mint(ALICE, 1 << 60)
    for _ in range(3):
        system.inc_account_nonce(ALICE)
    balances.mint(ALICE, 1)
    counts = "03000000" + "00000000" + "01000000" + "00000000"
    amounts = "0100000000000010" + "00" * 8 + "00" * 32 + "00" * 15 + "80"
    assert system.state.get(system.account.storage_key(ALICE)) == bytes.fromhex(counts + amounts)
    assert (system.account_nonce(ALICE), system.account_nonce(BOB)) == (3, 0)


@over("smoldot/real_genesis_rococo_asset_hub.json")
def test_real_accounts_are_read_and_written_back(cases: list[Case]) -> None:
    """Collators at genesis: a session keeps them, and no balance has been written yet."""
    prefix = System(State()).account.prefix
    found = [unhex(value) for key, value in cases[0]["kv_without_code"] if unhex(key).startswith(prefix)]
    assert found
    for encoded in found:
        info = AccountInfo.decode(encoded)
        assert info == AccountInfo(providers=1, data=AccountData(flags=0))
        assert info.encode() == encoded


def test_an_account_lives_while_it_has_a_provider(system: System) -> None:
    system.inc_providers(ALICE)
    system.inc_providers(ALICE)
    system.dec_providers(ALICE)
    assert system.account_info(ALICE) == AccountInfo(providers=1)
    system.inc_consumers(ALICE)
    with pytest.raises(ConsumerRemaining, match="still needed"):
        system.dec_providers(ALICE)
    system.dec_consumers(ALICE)
    system.dec_providers(ALICE)
    assert ALICE not in system.account
    assert list(system.events) == [NewAccount(ALICE), KilledAccount(ALICE)]


def test_nothing_depends_on_an_account_that_does_not_exist(system: System) -> None:
    with pytest.raises(NoProviders, match="does not exist"):
        system.inc_consumers(ALICE)
    with pytest.raises(AssertionError, match="no provider to lose"):
        system.dec_providers(ALICE)
    with pytest.raises(AssertionError, match="nothing depends"):
        system.dec_consumers(ALICE)


def test_a_remark_is_carried_and_its_hash_told_on_request(system: System) -> None:
    before = system.state.snapshot()
    assert system.remark(Origin.none(), b"hello") == Weight(2_119_000 + 5 * 390)
    assert len(system.events) == 0
    assert system.remark_with_event(Origin.signed(ALICE), b"hello") == Weight(8_097_000 + 5 * 1_455)
    assert list(system.events) == [Remarked(ALICE, blake2_256(b"hello"))]
    assert system.state.snapshot() == before
    with pytest.raises(BadOrigin, match="expected an account"):
        system.remark_with_event(Origin.root(), b"hello")


def test_the_last_event_of_an_extrinsic_says_how_it_ended(system: System) -> None:
    info, refusal = DispatchInfo(Weight(5, 6), DispatchClass.Operational, Pays.No), DispatchError()
    system.note_applied_extrinsic(DispatchInfo(Weight(1)))
    system.note_applied_extrinsic(info, refusal)
    assert list(system.events) == [ExtrinsicSuccess(DispatchInfo(Weight(1))), ExtrinsicFailed(refusal, info)]


def test_a_call_may_say_that_nobody_pays_for_it(system: System) -> None:
    free = system.apply(lambda: PostDispatchInfo(Weight(2), Pays.No), declared=Weight(3))
    paid = system.apply(lambda: Weight(2), declared=Weight(3))
    assert (free.used, paid.used) == (PostDispatchInfo(Weight(2), Pays.No), PostDispatchInfo(Weight(2)))
    assert system.meter.consumed == Weight(4)
