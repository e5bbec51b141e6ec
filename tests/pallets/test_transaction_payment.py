"""Fees: what an extrinsic costs, who pays, what comes back, and in which order it is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.relay import ALICE, BOB, CAROL
from relaycast_pallets import Event, InsufficientBalance, Origin, State, System
from relaycast_pallets.balances import Balances, Deposit, DustLost, Endowed, Transfer, Withdraw
from relaycast_pallets.frame.dispatch import DispatchInfo, Pays, PostDispatchInfo
from relaycast_pallets.frame.system import ExtrinsicFailed, ExtrinsicSuccess, KilledAccount, NewAccount
from relaycast_pallets.transaction_payment import FeeDetails, TransactionFeePaid, TransactionPayment
from relaycast_trie import CodecError
from relaycast_xcm.primitives import Weight

DOT = 10_000_000_000
DEPOSIT = DOT // 100
LENGTH, TIP = 140, 7
DECLARED, USED = Weight(400_000_000, 5_000), Weight(200_000_000, 1_000)


def payment(*, author: bytes | None = None) -> TransactionPayment:
    """Return the fees of a chain on which Alice has one DOT."""
    balances = Balances(System(State()), existential_deposit=DEPOSIT)
    balances.mint(ALICE, DOT)
    balances.system.initialize(1)
    fees = TransactionPayment(balances, author=author)
    fees.build_genesis()
    return fees


def apply(fees: TransactionPayment, value: int, *, pays_fee: Pays = Pays.Yes) -> list[Event]:
    """Apply a transfer from Alice to Bob as a block does and return the events."""
    balances, system = fees.balances, fees.balances.system

    def call() -> PostDispatchInfo:
        balances.transfer_allow_death(Origin.signed(ALICE), BOB, value)
        return PostDispatchInfo(USED, pays_fee)

    withdrawn = fees.withdraw_fee(ALICE, LENGTH, DECLARED, TIP)
    result = system.apply(call, declared=DECLARED)
    fees.refund(withdrawn, result.used)
    system.note_applied_extrinsic(DispatchInfo(result.weight), result.error)
    return system.events.take()


def test_a_fee_is_a_base_bytes_and_weight() -> None:
    fees = payment()
    assert fees.fee_details(LENGTH, USED) == FeeDetails(10_000_000, LENGTH * 1_000_000, 20_565_341)
    assert fees.compute_fee(LENGTH, USED, TIP) == 10_000_000 + 140_000_000 + 20_565_341 + TIP
    assert fees.compute_fee(LENGTH, USED, TIP, pays_fee=Pays.No) == TIP
    fees.next_fee_multiplier.put(2 * 10**18)
    assert fees.fee_details(LENGTH, USED).adjusted_weight_fee == 2 * 20_565_341


def test_the_multiplier_and_the_version_have_the_bytes_of_a_node() -> None:
    fees = payment()
    assert fees.next_fee_multiplier.codec.encode(fees.multiplier).hex() == "000064a7b3b6e00d" + "00" * 8
    assert fees.balances.system.state.get(fees.storage_version.storage_key()) == b"\x01"
    with pytest.raises(CodecError, match="one byte"):
        fees.storage_version.codec.decode(b"\x02")
    assert TransactionPayment(Balances(System(State()))).multiplier == 10**18, "1 before the genesis is built"


def test_events_come_in_the_order_of_a_node() -> None:
    fees = payment()
    declared, used = fees.compute_fee(LENGTH, DECLARED, TIP), fees.compute_fee(LENGTH, USED, TIP)
    assert apply(fees, DOT // 2) == [
        Withdraw(ALICE, declared),
        NewAccount(BOB),
        Endowed(BOB, DOT // 2),
        Transfer(ALICE, BOB, DOT // 2),
        Deposit(ALICE, declared - used),
        TransactionFeePaid(ALICE, used, TIP),
        ExtrinsicSuccess(DispatchInfo(USED)),
    ]
    assert fees.balances.free(ALICE) == DOT - DOT // 2 - used
    assert fees.balances.total_issuance == DOT - used, "without an author, a fee is no longer issued"


def test_a_refused_call_pays_what_it_declared() -> None:
    fees = payment()
    declared = fees.compute_fee(LENGTH, DECLARED, TIP)
    withdrawn, paid, failed = apply(fees, DOT)
    assert (withdrawn, paid) == (Withdraw(ALICE, declared), TransactionFeePaid(ALICE, declared, TIP))
    assert isinstance(failed, ExtrinsicFailed)
    assert isinstance(failed.dispatch_error, InsufficientBalance)
    assert fees.balances.free(ALICE) == DOT - declared


def test_a_call_that_does_not_pay_costs_its_tip() -> None:
    fees = payment()
    assert TransactionFeePaid(ALICE, TIP, TIP) in apply(fees, DEPOSIT, pays_fee=Pays.No)
    assert fees.balances.free(ALICE) == DOT - DEPOSIT - TIP


def test_an_account_that_is_gone_gets_nothing_back() -> None:
    fees = payment()
    declared = fees.compute_fee(LENGTH, DECLARED, TIP)
    told = apply(fees, DOT - declared - 1)
    assert told[1:3] == [KilledAccount(ALICE), DustLost(ALICE, 1)]
    assert told[-2:] == [TransactionFeePaid(ALICE, declared, TIP), ExtrinsicSuccess(DispatchInfo(USED))]
    assert ALICE not in fees.balances.system.account


def test_the_author_earns_the_fee() -> None:
    fees = payment(author=CAROL)
    used = fees.compute_fee(LENGTH, USED, TIP)
    told = apply(fees, DEPOSIT)
    author = [event for event in told if isinstance(event, Deposit)]
    assert author[-1] == Deposit(CAROL, used)
    assert told.index(author[-1]) + 1 == told.index(TransactionFeePaid(ALICE, used, TIP))
    assert (fees.balances.free(CAROL), fees.balances.total_issuance) == (used, DOT)


def test_an_author_without_an_account_earns_nothing_below_the_existential_deposit() -> None:
    fees = payment(author=CAROL)
    assert Deposit(CAROL, TIP) not in apply(fees, DEPOSIT, pays_fee=Pays.No)
    assert (fees.balances.free(CAROL), fees.balances.total_issuance) == (0, DOT - TIP)


def test_who_cannot_pay_and_stay_is_refused() -> None:
    fees = payment()
    spare = DOT - DEPOSIT
    assert (fees.can_withdraw_fee(ALICE, spare), fees.can_withdraw_fee(ALICE, spare + 1)) == (True, False)
    before = fees.balances.system.state.snapshot()
    with pytest.raises(InsufficientBalance, match="needs"):
        fees.withdraw_fee(ALICE, LENGTH, DECLARED, spare)
    assert fees.balances.system.state.snapshot() == before


@given(st.integers(0, 10_000), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, DOT))
def test_a_call_never_costs_more_than_was_withdrawn(length: int, declared: int, used: int, tip: int) -> None:
    fees = payment()
    fees.balances.mint(ALICE, 10_000 * DOT)
    before = fees.balances.free(ALICE)
    withdrawn = fees.withdraw_fee(ALICE, length, Weight(declared), tip)
    paid = fees.refund(withdrawn, PostDispatchInfo(Weight(used)))
    assert tip <= paid <= withdrawn.fee
    assert before - fees.balances.free(ALICE) == paid == before - fees.balances.total_issuance
