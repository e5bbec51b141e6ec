"""Accounts begin and end at the existential deposit, keep their nonces, and events come in upstream's order."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pallets.relay import ALICE, BOB, CAROL
from relaycast_pallets import (
    PUBLISHER_DEPOSIT,
    BadOrigin,
    DispatchError,
    Event,
    InsufficientBalance,
    Origin,
    State,
    System,
)
from relaycast_pallets.balances import (
    WEIGHTS,
    Balances,
    BalanceSet,
    BelowMinimum,
    CannotCreateHold,
    Deposit,
    DustLost,
    Endowed,
    Frozen,
    Held,
    Issued,
    Minted,
    NotExpendable,
    Released,
    Transfer,
    Withdraw,
)
from relaycast_pallets.frame.dispatch import ArithmeticOverflow, ConsumerRemaining
from relaycast_pallets.frame.system import KilledAccount, NewAccount
from relaycast_xcm.primitives import U128_MAX
from searches import examples

DEPOSIT = 100
SENDER = Origin.signed(ALICE)


@pytest.fixture
def balances() -> Balances:
    """Alice has 1,000 above an existential deposit of 100; nobody else has an account."""
    balances = Balances(System(State()), existential_deposit=DEPOSIT)
    balances.mint(ALICE, 1_000)
    balances.system.initialize(1)
    return balances


def events(balances: Balances) -> list[Event]:
    return balances.system.events.take()


def test_a_transfer_to_nobody_creates_the_account(balances: Balances) -> None:
    assert balances.transfer_allow_death(SENDER, BOB, DEPOSIT) == balances.weight("transfer_allow_death")
    assert events(balances) == [NewAccount(BOB), Endowed(BOB, DEPOSIT), Transfer(ALICE, BOB, DEPOSIT)]
    balances.transfer_allow_death(SENDER, BOB, 1)
    assert events(balances) == [Transfer(ALICE, BOB, 1)]
    assert balances.system.account_info(BOB).providers == 1


def test_a_transfer_that_leaves_too_little_removes_the_account_and_its_dust(balances: Balances) -> None:
    balances.system.inc_account_nonce(ALICE)
    balances.transfer_allow_death(SENDER, BOB, 901)
    assert events(balances) == [
        KilledAccount(ALICE),
        DustLost(ALICE, 99),
        NewAccount(BOB),
        Endowed(BOB, 901),
        Transfer(ALICE, BOB, 901),
    ]
    assert ALICE not in balances.system.account
    assert (balances.system.account_nonce(ALICE), balances.total_issuance) == (0, 901)


def test_transfer_keep_alive_leaves_the_existential_deposit(balances: Balances) -> None:
    balances.transfer_keep_alive(SENDER, BOB, 900)
    assert (balances.free(ALICE), balances.free(BOB)) == (DEPOSIT, 900)


@pytest.mark.parametrize(
    ("keep_alive", "left"),
    [
        (True, DEPOSIT),  # the account stays, with the deposit that keeps it
        (False, 0),  # the account goes, to the last unit
    ],
)
def test_transfer_all_moves_what_can_be_spent(balances: Balances, keep_alive: bool, left: int) -> None:
    balances.transfer_all(SENDER, BOB, keep_alive)
    assert (balances.free(ALICE), balances.free(BOB)) == (left, 1_000 - left)
    assert (ALICE in balances.system.account) == keep_alive


def test_transfer_all_leaves_what_a_hold_needs(balances: Balances) -> None:
    balances.hold(ALICE, PUBLISHER_DEPOSIT, 300)
    balances.transfer_all(SENDER, BOB, keep_alive=False)
    assert (balances.free(ALICE), balances.free(BOB), balances.total(ALICE)) == (DEPOSIT, 600, 400)


def test_governance_sets_a_balance_and_the_issuance_follows(balances: Balances) -> None:
    balances.force_set_balance(Origin.root(), BOB, 700)
    assert events(balances) == [NewAccount(BOB), Endowed(BOB, 700), BalanceSet(BOB, 700)]
    balances.force_set_balance(Origin.root(), ALICE, DEPOSIT - 1)
    assert events(balances) == [KilledAccount(ALICE), BalanceSet(ALICE, 0)]
    assert balances.total_issuance == 700


REFUSED: list[tuple[type[DispatchError], Callable[[Balances], object], str]] = [
    (InsufficientBalance, lambda it: it.transfer_allow_death(SENDER, BOB, 801), "has 800, needs 801"),
    (
        BelowMinimum,
        lambda it: it.transfer_allow_death(SENDER, BOB, 99),
        "would have 99, the existential deposit is 100",
    ),
    (Frozen, lambda it: it.transfer_allow_death(SENDER, BOB, 701), "may spend 700, needs 701"),
    (NotExpendable, lambda it: it.transfer_keep_alive(Origin.signed(CAROL), ALICE, 1), "would be left with 99"),
    (BadOrigin, lambda it: it.transfer_allow_death(Origin.root(), BOB, 500), "expected an account"),
    (BadOrigin, lambda it: it.transfer_keep_alive(Origin.none(), BOB, 500), "expected an account"),
    (BadOrigin, lambda it: it.transfer_all(Origin.parachain(2_000), BOB, False), "expected an account"),
    (BadOrigin, lambda it: it.force_set_balance(SENDER, BOB, 500), "expected root"),
    (ConsumerRemaining, lambda it: it.force_set_balance(Origin.root(), ALICE, 0), "is still needed"),
    (ArithmeticOverflow, lambda it: it.force_set_balance(Origin.root(), BOB, U128_MAX), "does not fit into a u128"),
    (ArithmeticOverflow, lambda it: it.mint(ALICE, U128_MAX), "does not fit into a u128"),
    (BelowMinimum, lambda it: it.mint_into(BOB, 99), "would have 99"),
    (InsufficientBalance, lambda it: it.withdraw(ALICE, 701), "has 700, needs 701"),
    (InsufficientBalance, lambda it: it.burn_from(ALICE, 701), "has 700, needs 701"),
    (InsufficientBalance, lambda it: it.hold(ALICE, PUBLISHER_DEPOSIT, 701), "has 700, needs 701"),
    (CannotCreateHold, lambda it: it.hold(BOB, PUBLISHER_DEPOSIT, 1), "does not exist"),
]


@pytest.mark.parametrize(("error", "call", "told"), REFUSED)
def test_a_refusal_says_why_and_leaves_no_trace(
    balances: Balances, error: type[DispatchError], call: Callable[[Balances], object], told: str
) -> None:
    balances.mint(CAROL, DEPOSIT)
    balances.hold(ALICE, PUBLISHER_DEPOSIT, 200)
    before, log = balances.system.state.snapshot(), list(balances.system.events)
    with pytest.raises(error, match=told):
        call(balances)
    assert (balances.system.state.snapshot(), list(balances.system.events)) == (before, log)


def test_a_freeze_keeps_what_no_hold_covers(balances: Balances) -> None:
    info = balances.system.account_info(ALICE)
    frozen = bytearray(info.encode())
    frozen[48:50] = (400).to_bytes(2, "little")
    balances.system.state.put(balances.system.account.storage_key(ALICE), bytes(frozen))
    assert balances.spendable(ALICE) == 600
    with pytest.raises(Frozen):
        balances.transfer_allow_death(SENDER, BOB, 601)
    balances.transfer_allow_death(SENDER, BOB, 600)
    assert balances.system.account_info(ALICE).data.frozen == 400


def test_a_hold_depends_on_the_account_until_it_is_released(balances: Balances) -> None:
    balances.hold(ALICE, PUBLISHER_DEPOSIT, 500)
    assert balances.system.account_info(ALICE).consumers == 1
    balances.release(ALICE, PUBLISHER_DEPOSIT, 500)
    assert balances.system.account_info(ALICE).consumers == 0
    assert events(balances) == [Held(PUBLISHER_DEPOSIT, ALICE, 500), Released(PUBLISHER_DEPOSIT, ALICE, 500)]


def test_fees_are_withdrawn_and_deposited(balances: Balances) -> None:
    balances.withdraw(ALICE, 50)
    balances.deposit(ALICE, 20)
    balances.deposit_fees(BOB, 100)
    balances.deposit_fees(CAROL, 99)
    balances.mint_into(BOB, 1)
    assert events(balances) == [
        Withdraw(ALICE, 50),
        Deposit(ALICE, 20),
        Issued(100),
        NewAccount(BOB),
        Endowed(BOB, 100),
        Deposit(BOB, 100),
        Minted(BOB, 1),
    ]
    assert (balances.free(CAROL), balances.total_issuance) == (0, 1_071)


def test_nothing_moves_where_nothing_is_sent(balances: Balances) -> None:
    before = balances.system.state.snapshot()
    balances.transfer_allow_death(SENDER, BOB, 0)
    balances.transfer_allow_death(SENDER, ALICE, 1_000)
    assert balances.system.state.snapshot() == before
    assert events(balances) == [Transfer(ALICE, BOB, 0)]


def test_without_a_deposit_a_nonce_outlives_the_funds() -> None:
    balances = Balances(System(State()))
    balances.mint(ALICE, 10)
    balances.system.inc_account_nonce(ALICE)
    balances.transfer(ALICE, BOB, 10)
    assert (balances.free(ALICE), balances.system.account_nonce(ALICE)) == (0, 1)
    balances.transfer(BOB, ALICE, 10)
    assert (BOB in balances.system.account, balances.system.account_nonce(ALICE)) == (False, 1)


def test_every_call_has_a_weight() -> None:
    for call in ("transfer_allow_death", "transfer_keep_alive", "transfer_all", "force_set_balance"):
        assert WEIGHTS[call].base.weight.ref_time > 0


class Accounts(RuleBasedStateMachine):
    """Whatever is called: no account is below the deposit, nothing is made or lost unseen, no nonce falls."""

    deposit = DEPOSIT

    def __init__(self) -> None:
        super().__init__()
        self.balances = Balances(System(State()), existential_deposit=self.deposit)
        self.system = self.balances.system
        self.nonces: dict[bytes, int] = {}

    people = st.sampled_from([ALICE, BOB, CAROL])
    amounts = st.integers(0, 3) | st.integers(95, 105) | st.integers(0, 1_000)
    flags = st.booleans()

    def attempt(self, call: Callable[[], object]) -> None:
        with self.system.state.transaction():
            try:
                with self.system.state.transaction():
                    call()
            except DispatchError:
                pass
        for event in self.system.events.take():
            if isinstance(event, KilledAccount):
                self.nonces.pop(event.account, None)

    @rule(who=people, amount=amounts)
    def mint(self, who: bytes, amount: int) -> None:
        self.attempt(lambda: self.balances.mint_into(who, amount))

    @rule(source=people, to=people, amount=amounts, keep_alive=flags)
    def transfer(self, source: bytes, to: bytes, amount: int, keep_alive: bool) -> None:
        call = self.balances.transfer_keep_alive if keep_alive else self.balances.transfer_allow_death
        self.attempt(lambda: call(Origin.signed(source), to, amount))

    @rule(source=people, to=people, keep_alive=flags)
    def transfer_all(self, source: bytes, to: bytes, keep_alive: bool) -> None:
        self.attempt(lambda: self.balances.transfer_all(Origin.signed(source), to, keep_alive))

    @rule(who=people, amount=amounts)
    def force_set_balance(self, who: bytes, amount: int) -> None:
        self.attempt(lambda: self.balances.force_set_balance(Origin.root(), who, amount))

    @rule(who=people, amount=amounts)
    def burn(self, who: bytes, amount: int) -> None:
        self.attempt(lambda: self.balances.burn_from(who, amount))

    @rule(who=people, amount=amounts, refund=amounts)
    def pay(self, who: bytes, amount: int, refund: int) -> None:
        def pay() -> None:
            self.balances.withdraw(who, amount)
            self.balances.deposit(who, min(amount, refund))

        self.attempt(pay)

    @rule(who=people, amount=amounts)
    def fees(self, who: bytes, amount: int) -> None:
        self.attempt(lambda: self.balances.deposit_fees(who, amount))

    @rule(who=people, amount=amounts)
    def hold(self, who: bytes, amount: int) -> None:
        self.attempt(lambda: self.balances.hold(who, PUBLISHER_DEPOSIT, amount))

    @rule(who=people, amount=amounts, burn=flags)
    def end_hold(self, who: bytes, amount: int, burn: bool) -> None:
        end = self.balances.slash if burn else self.balances.release
        self.attempt(lambda: end(who, PUBLISHER_DEPOSIT, amount))

    @rule(who=people)
    def send(self, who: bytes) -> None:
        if who in self.system.account:
            self.system.inc_account_nonce(who)

    @invariant()
    def issuance_is_the_sum_of_accounts(self) -> None:
        assert self.balances.total_issuance == sum(info.data.total for _, info in self.system.account.items())

    @invariant()
    def no_account_is_below_the_deposit(self) -> None:
        for who, info in self.system.account.items():
            assert info.data.free >= self.deposit
            assert info.providers == 1
            assert info.consumers == bool(info.data.reserved)
            assert info.data.reserved == self.balances.held(who, PUBLISHER_DEPOSIT)

    @invariant()
    def no_nonce_falls_while_its_account_lives(self) -> None:
        for who in (ALICE, BOB, CAROL):
            nonce = self.system.account_nonce(who)
            assert nonce >= self.nonces.get(who, 0)
            self.nonces[who] = nonce


class AccountsWithoutDeposit(Accounts):
    deposit = 0


@pytest.mark.parametrize("machine", [Accounts, AccountsWithoutDeposit])
def test_the_laws_hold_whatever_is_called(machine: type[Accounts]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=examples(40), stateful_step_count=40))
