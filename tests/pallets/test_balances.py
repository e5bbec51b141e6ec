"""Money: what is free, what is held and why, and that none is made or lost on the way."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pallets.relay import ALICE, BOB, CAROL, Relay, refused
from relaycast_pallets import PUBLISHER_DEPOSIT, HoldReason, InsufficientBalance, State, System
from relaycast_pallets.balances import Balances, Burned, BurnedHeld, Deposit, Held, Issued, Minted, Released, Transfer
from relaycast_pallets.frame.account import AccountInfo
from relaycast_trie import CodecError
from searches import examples

OTHER_REASON = HoldReason("Preimage", "Preimage", pallet_index=10, index=0)
REASONS = (PUBLISHER_DEPOSIT, OTHER_REASON)


def test_a_hold_takes_funds_out_of_reach_and_a_release_gives_them_back(relay: Relay) -> None:
    relay.balances.hold(ALICE, PUBLISHER_DEPOSIT, 400)
    relay.balances.hold(ALICE, OTHER_REASON, 100)
    assert (relay.free(), relay.held(), relay.balances.held(ALICE, OTHER_REASON)) == (9_500, 400, 100)
    with refused(relay, InsufficientBalance):
        relay.balances.transfer(ALICE, BOB, 9_501)
    relay.balances.release(ALICE, PUBLISHER_DEPOSIT, 150)
    assert (relay.free(), relay.held()) == (9_650, 250)
    assert list(relay.system.events) == [
        Held(PUBLISHER_DEPOSIT, ALICE, 400),
        Held(OTHER_REASON, ALICE, 100),
        Released(PUBLISHER_DEPOSIT, ALICE, 150),
    ]


def test_a_slash_burns_what_is_held(relay: Relay) -> None:
    relay.balances.hold(ALICE, PUBLISHER_DEPOSIT, 400)
    relay.balances.slash(ALICE, PUBLISHER_DEPOSIT, 300)
    assert (relay.free(), relay.held(), relay.balances.total_issuance) == (9_600, 100, 29_700)
    assert list(relay.system.events)[1:] == [BurnedHeld(PUBLISHER_DEPOSIT, ALICE, 300)]


def test_a_transfer_moves_what_is_free(relay: Relay) -> None:
    relay.balances.transfer(ALICE, BOB, 10_000)
    assert (relay.free(ALICE), relay.free(BOB)) == (0, 20_000)
    assert ALICE not in relay.system.account
    relay.balances.transfer(BOB, BOB, 5)
    assert relay.free(BOB) == 20_000
    assert list(relay.system.events) == [Transfer(ALICE, BOB, 10_000)], "to itself an account moves nothing"


def test_what_messages_move_changes_what_is_issued_and_is_told(relay: Relay) -> None:
    relay.balances.burn_from(ALICE, 400)
    assert (relay.free(ALICE), relay.balances.total_issuance) == (9_600, 29_600)
    relay.balances.mint_into(BOB, 300)
    relay.balances.deposit_fees(CAROL, 100)
    assert (relay.free(BOB), relay.free(CAROL), relay.balances.total_issuance) == (10_300, 10_100, 30_000)
    assert list(relay.system.events) == [Burned(ALICE, 400), Minted(BOB, 300), Issued(100), Deposit(CAROL, 100)]


def test_nobody_spends_more_than_there_is(relay: Relay) -> None:
    relay.balances.hold(ALICE, PUBLISHER_DEPOSIT, 10)
    spends: list[Callable[[], None]] = [
        lambda: relay.balances.transfer(ALICE, BOB, 9_991),
        lambda: relay.balances.burn_from(ALICE, 9_991),
        lambda: relay.balances.hold(ALICE, OTHER_REASON, 9_991),
        lambda: relay.balances.release(ALICE, PUBLISHER_DEPOSIT, 11),
        lambda: relay.balances.release(ALICE, OTHER_REASON, 1),
        lambda: relay.balances.slash(ALICE, PUBLISHER_DEPOSIT, 11),
        lambda: relay.balances.slash(BOB, PUBLISHER_DEPOSIT, 1),
    ]
    for spend in spends:
        with refused(relay, InsufficientBalance):
            spend()


def test_negative_amounts_are_slips_of_the_caller(relay: Relay) -> None:
    spends: list[Callable[[], None]] = [
        lambda: relay.balances.mint(ALICE, -1),
        lambda: relay.balances.mint_into(ALICE, -1),
        lambda: relay.balances.burn_from(ALICE, -1),
        lambda: relay.balances.deposit_fees(ALICE, -1),
        lambda: relay.balances.transfer(ALICE, BOB, -1),
        lambda: relay.balances.hold(ALICE, PUBLISHER_DEPOSIT, -1),
        lambda: relay.balances.release(ALICE, PUBLISHER_DEPOSIT, -1),
        lambda: relay.balances.slash(ALICE, PUBLISHER_DEPOSIT, -1),
    ]
    for spend in spends:
        with pytest.raises(ValueError, match="not negative"):
            spend()


def test_accounts_and_holds_have_the_bytes_of_a_node(relay: Relay) -> None:
    relay.balances.hold(ALICE, PUBLISHER_DEPOSIT, 256)
    account = relay.state.get(relay.system.account.storage_key(ALICE))
    holds = relay.state.get(relay.balances.holds.storage_key(ALICE))
    one, flags = "01000000", "00" * 15 + "80"
    amounts = [(9_744).to_bytes(16, "little").hex(), (256).to_bytes(16, "little").hex(), "00" * 16, flags]
    assert account == bytes.fromhex("00000000" + one + one + "00000000" + "".join(amounts))
    assert holds == b"\x04" + bytes([200, 0]) + (256).to_bytes(16, "little")
    assert (
        relay.system.account.storage_key(ALICE)
        .hex()
        .startswith("26aa394eea5630e07c48ae0c9558cef7b99d880ec681799c0cf30e8886371da9")
    )


@pytest.mark.parametrize("size", [0, 79, 81])
def test_an_account_info_has_80_bytes(size: int) -> None:
    with pytest.raises(CodecError):
        AccountInfo.decode(bytes(size))


class Ledger(RuleBasedStateMachine):
    """The pallet against two dictionaries: nothing is made but by minting, nothing lost but by burning and slashing."""

    def __init__(self) -> None:
        super().__init__()
        self.balances = Balances(System(State()))
        self.free: dict[bytes, int] = {}
        self.held: dict[tuple[bytes, HoldReason], int] = {}

    accounts = st.sampled_from([ALICE, BOB, CAROL])
    reasons = st.sampled_from(REASONS)
    amounts = st.integers(0, 30)

    @rule(account=accounts, amount=amounts)
    def mint(self, account: bytes, amount: int) -> None:
        self.balances.mint(account, amount)
        self.free[account] = self.free.get(account, 0) + amount

    @rule(account=accounts, amount=amounts)
    def mint_into(self, account: bytes, amount: int) -> None:
        self.balances.mint_into(account, amount)
        self.free[account] = self.free.get(account, 0) + amount

    @rule(account=accounts, amount=amounts)
    def deposit_fees(self, account: bytes, amount: int) -> None:
        self.balances.deposit_fees(account, amount)
        self.free[account] = self.free.get(account, 0) + amount

    @rule(account=accounts, amount=amounts)
    def burn_from(self, account: bytes, amount: int) -> None:
        if self.allowed(self.free.get(account, 0), amount, lambda: self.balances.burn_from(account, amount)):
            self.free[account] = self.free.get(account, 0) - amount

    @rule(source=accounts, destination=accounts, amount=amounts)
    def transfer(self, source: bytes, destination: bytes, amount: int) -> None:
        if self.allowed(self.free.get(source, 0), amount, lambda: self.balances.transfer(source, destination, amount)):
            self.free[source] = self.free.get(source, 0) - amount
            self.free[destination] = self.free.get(destination, 0) + amount

    @rule(account=accounts, reason=reasons, amount=amounts)
    def hold(self, account: bytes, reason: HoldReason, amount: int) -> None:
        if self.allowed(self.free.get(account, 0), amount, lambda: self.balances.hold(account, reason, amount)):
            self.free[account] = self.free.get(account, 0) - amount
            self.held[account, reason] = self.held.get((account, reason), 0) + amount

    @rule(account=accounts, reason=reasons, amount=amounts)
    def release(self, account: bytes, reason: HoldReason, amount: int) -> None:
        held = self.held.get((account, reason), 0)
        if self.allowed(held, amount, lambda: self.balances.release(account, reason, amount)):
            self.held[account, reason] = held - amount
            self.free[account] = self.free.get(account, 0) + amount

    @rule(account=accounts, reason=reasons, amount=amounts)
    def slash(self, account: bytes, reason: HoldReason, amount: int) -> None:
        held = self.held.get((account, reason), 0)
        if self.allowed(held, amount, lambda: self.balances.slash(account, reason, amount)):
            self.held[account, reason] = held - amount

    @staticmethod
    def allowed(available: int, amount: int, spend: Callable[[], None]) -> bool:
        if amount <= available:
            spend()
            return True
        with pytest.raises(InsufficientBalance):
            spend()
        return False

    @invariant()
    def agrees_with_the_model(self) -> None:
        for account in (ALICE, BOB, CAROL):
            assert self.balances.free(account) == self.free.get(account, 0)
            for reason in REASONS:
                assert self.balances.held(account, reason) == self.held.get((account, reason), 0)
        assert self.balances.total_issuance == sum(self.free.values()) + sum(self.held.values())
        assert self.balances.total_issuance == sum(info.data.total for _, info in self.balances.system.account.items())


def test_the_pallet_agrees_with_the_model() -> None:
    run_state_machine_as_test(Ledger, settings=settings(max_examples=examples(30), stateful_step_count=40))
