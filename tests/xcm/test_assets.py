"""Assets in motion: withdrawals, deposits, transfers and fees, and that no unit is made or lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_xcm import (
    AllOf,
    AllowTopLevelPaidExecutionFrom,
    AllowUnpaidExecutionFrom,
    Asset,
    BuyExecution,
    ClearOrigin,
    Complete,
    Definite,
    DepositAsset,
    Everything,
    FixedRateTrader,
    Fungible,
    Incomplete,
    InstructionError,
    Location,
    NoBroadcast,
    PayFees,
    RefundSurplus,
    SetErrorHandler,
    TransferAsset,
    Trap,
    Weight,
    Wild,
    WildFungibility,
    WithdrawAsset,
    Xcm,
    XcmExecutor,
    assets,
)
from relaycast_xcm.assets import (
    BYTES_PER_MB,
    MAX_ASSETS_INTO_HOLDING,
    REF_TIME_PER_SECOND,
    All,
    AllCounted,
    AllOfCounted,
    Holding,
)
from relaycast_xcm.exceptions import (
    AssetNotFound,
    BadOrigin,
    FailedToTransactAsset,
    HoldingWouldOverflow,
    NotHoldingFees,
    Overflow,
    TooExpensive,
    XcmError,
)
from xcm.in_memory import AccountEmpty, Ledger

PARA, OTHER = Location.parachain(2_000), Location.parachain(3_000)
NATIVE, TOKEN = Location.here(), Location.parachain(1_000)
ALL = Wild(All())


def native(amount: int) -> Asset:
    return Asset.fungible(NATIVE, amount)


def rate() -> FixedRateTrader:
    """Return a trader that takes one unit for each unit of ref_time of upstream's tests."""
    return FixedRateTrader(NATIVE, units_per_second=REF_TIME_PER_SECOND)


def chain(ledger: Ledger) -> XcmExecutor:
    barrier = AllowUnpaidExecutionFrom(Everything())
    return XcmExecutor(barrier, broadcast=NoBroadcast(), assets=ledger, trader=rate)


def run(ledger: Ledger, *message: object) -> Complete | Incomplete:
    outcome = chain(ledger).prepare_and_execute(PARA, message)  # type: ignore[arg-type]  # instructions
    assert isinstance(outcome, Complete | Incomplete)
    return outcome


def funded(amount: int = 1_000) -> Ledger:
    return Ledger({(PARA, NATIVE): amount})


def error_of(outcome: Complete | Incomplete) -> tuple[int, XcmError]:
    assert isinstance(outcome, Incomplete)
    return outcome.error.index, outcome.error.error


def test_what_is_withdrawn_can_be_deposited() -> None:
    ledger = funded()
    outcome = run(ledger, WithdrawAsset((native(300),)), DepositAsset(ALL, OTHER))
    assert outcome == Complete(Weight(20, 20))
    assert (ledger.balance(PARA, NATIVE), ledger.balance(OTHER, NATIVE)) == (700, 300)


def test_a_withdrawal_without_funds_changes_nothing_and_tells_why() -> None:
    ledger = funded(10)
    outcome = run(ledger, WithdrawAsset(assets([native(5), Asset.fungible(TOKEN, 1)])))
    assert error_of(outcome) == (0, FailedToTransactAsset())
    assert isinstance(outcome, Incomplete)
    assert isinstance(outcome.error.cause, AccountEmpty)
    assert ledger.amounts == funded(10).amounts
    assert outcome.trapped == ()


def test_nobody_withdraws_or_transfers_without_origin() -> None:
    for instruction in (WithdrawAsset((native(1),)), TransferAsset((native(1),), OTHER)):
        ledger = funded()
        assert error_of(run(ledger, ClearOrigin(), instruction)) == (1, BadOrigin())
        assert ledger.amounts == funded().amounts


def test_a_transfer_moves_all_of_its_assets_or_none() -> None:
    ledger = funded()
    assert run(ledger, TransferAsset((native(400),), OTHER)) == Complete(Weight(10, 10))
    assert (ledger.balance(PARA, NATIVE), ledger.balance(OTHER, NATIVE)) == (600, 400)
    before = dict(ledger.amounts)
    both = assets([native(1), Asset.fungible(TOKEN, 1)])
    assert error_of(run(ledger, TransferAsset(both, OTHER))) == (0, FailedToTransactAsset())
    assert ledger.amounts == before


def test_a_deposit_that_fails_leaves_holding_as_it_was() -> None:
    ledger = funded()
    ledger.closed = frozenset({OTHER})
    outcome = run(ledger, WithdrawAsset((native(300),)), DepositAsset(ALL, OTHER))
    assert error_of(outcome) == (1, FailedToTransactAsset())
    assert outcome.trapped == (native(300),)
    assert ledger.balance(OTHER, NATIVE) == 0


def test_a_chain_without_assets_handles_none() -> None:
    executor = XcmExecutor(AllowUnpaidExecutionFrom(Everything()), broadcast=NoBroadcast())
    outcome = executor.prepare_and_execute(PARA, (WithdrawAsset((native(1),)),))
    assert outcome == Incomplete(Weight(10, 10), InstructionError(0, AssetNotFound()))
    paid = executor.prepare_and_execute(PARA, (BuyExecution(native(1), Weight(1, 1)),))
    assert paid == Incomplete(Weight(10, 10), InstructionError(0, NotHoldingFees()))


def test_execution_is_bought_from_holding_and_the_rest_stays() -> None:
    ledger = funded()
    barrier = AllowTopLevelPaidExecutionFrom(Everything())
    executor = XcmExecutor(barrier, broadcast=NoBroadcast(), assets=ledger, trader=rate)
    message: Xcm = (WithdrawAsset((native(100),)), BuyExecution(native(100), None), DepositAsset(ALL, OTHER))
    assert executor.prepare_and_execute(PARA, message) == Complete(Weight(30, 30))
    assert (ledger.balance(PARA, NATIVE), ledger.balance(OTHER, NATIVE)) == (900, 70)


def test_fees_that_do_not_pay_stay_in_holding() -> None:
    message = (WithdrawAsset((native(29),)), BuyExecution(native(29), Weight(30, 30)))
    outcome = run(funded(), *message)
    assert error_of(outcome) == (1, TooExpensive())
    assert outcome.trapped == (native(29),)
    assert error_of(run(funded(), WithdrawAsset((native(1),)), BuyExecution(native(2), Weight(1, 1)))) == (
        1,
        NotHoldingFees(),
    )


def test_unlimited_execution_buys_nothing() -> None:
    ledger = funded()
    outcome = run(ledger, WithdrawAsset((native(5),)), BuyExecution(native(5), None), DepositAsset(ALL, OTHER))
    assert outcome == Complete(Weight(30, 30))
    assert ledger.balance(OTHER, NATIVE) == 5


def test_fees_are_paid_once_and_what_is_left_comes_back_at_the_end() -> None:
    ledger = funded()
    outcome = run(
        ledger, WithdrawAsset((native(200),)), PayFees(native(100)), PayFees(native(100)), DepositAsset(ALL, OTHER)
    )
    assert ledger.balance(OTHER, NATIVE) == 100  # the second payment takes nothing
    assert outcome.trapped == (native(60),)  # 100 paid for 40


def test_a_refund_brings_the_rest_of_the_fees_back() -> None:
    ledger = funded()
    message = (WithdrawAsset((native(200),)), PayFees(native(100)), RefundSurplus(), DepositAsset(ALL, OTHER))
    outcome = run(ledger, *message)
    assert outcome.trapped == ()
    assert ledger.balance(OTHER, NATIVE) == 200 - 40


def test_surplus_is_refunded_to_an_error_handler() -> None:
    ledger = funded()
    handler = SetErrorHandler((RefundSurplus(), DepositAsset(ALL, OTHER)))
    message = (
        WithdrawAsset((native(100),)),
        BuyExecution(native(100), Weight(70, 70)),
        handler,
        Trap(1),
        ClearOrigin(),
    )
    outcome = run(ledger, *message)
    assert error_of(outcome)[0] == 3
    assert outcome.used == Weight(60, 60)
    assert ledger.balance(OTHER, NATIVE) == 100 - 60


def test_proof_size_has_a_price_too() -> None:
    trader = FixedRateTrader(NATIVE, units_per_second=0, units_per_mb=BYTES_PER_MB * 3)
    assert trader.buy_weight(Weight(5, 7), native(30)) == (native(9),)
    assert trader.refund_weight(Weight(0, 2)) == native(6)
    assert trader.refund_weight(Weight(0, 100)) == native(15)
    assert trader.refund_weight(Weight(0, 100)) is None
    with pytest.raises(TooExpensive):
        trader.buy_weight(Weight(0, 1), Asset.fungible(TOKEN, 100))


def test_no_more_is_refunded_than_was_paid() -> None:
    half = FixedRateTrader(NATIVE, units_per_second=REF_TIME_PER_SECOND // 2)
    for _ in range(2):
        assert half.buy_weight(Weight(1, 0), native(1)) == (native(1),)  # half a unit rounds down to nothing
    assert half.refund_weight(Weight(2, 0)) is None


@pytest.mark.parametrize(
    ("chosen", "taken"),
    [
        (ALL, (native(10), Asset.fungible(TOKEN, 5))),
        (Wild(AllCounted(1)), (native(10),)),
        (Wild(AllCounted(0)), ()),
        (Wild(AllOf(TOKEN)), (Asset.fungible(TOKEN, 5),)),
        (Wild(AllOf(TOKEN, WildFungibility.NON_FUNGIBLE)), ()),
        (Wild(AllOfCounted(TOKEN, WildFungibility.FUNGIBLE, 1)), (Asset.fungible(TOKEN, 5),)),
        (Wild(AllOfCounted(TOKEN, WildFungibility.FUNGIBLE, 0)), ()),
        (Wild(AllOf(OTHER)), ()),
        (Definite((native(4),)), (native(4),)),
        (Definite((native(40),)), (native(10),)),  # as much as there is
        (Definite((Asset.fungible(OTHER, 1),)), ()),
    ],
)
def test_a_filter_takes_what_it_picks_and_leaves_the_rest(chosen: Definite | Wild, taken: tuple[Asset, ...]) -> None:
    holding = Holding()
    holding.subsume((native(10), Asset.fungible(TOKEN, 5)))
    assert holding.saturating_take(chosen) == taken
    assert sum(asset.amount for asset in holding.assets + taken) == 15


def test_holding_has_room_for_64_ids_and_amounts_of_u128() -> None:
    holding = Holding()
    holding.subsume(Asset.fungible(Location.parachain(para), 1) for para in range(MAX_ASSETS_INTO_HOLDING))
    holding.ensure_room([Asset.fungible(Location.parachain(0), 1)])
    with pytest.raises(HoldingWouldOverflow):
        holding.ensure_room([native(1)])
    with pytest.raises(Overflow):
        holding.ensure_room([Asset.fungible(Location.parachain(0), 2**128 - 1)])


def test_an_amount_is_above_zero_and_assets_of_one_id_add_up() -> None:
    for amount in (0, 2**128):
        with pytest.raises(ValueError, match="above zero"):
            Fungible(amount)
    assert assets([Asset.fungible(TOKEN, 1), native(2), native(3)]) == (native(5), Asset.fungible(TOKEN, 1))
    assert str(native(5)) == "5 of Here"


amounts = st.integers(1, 150)
steps = st.one_of(
    st.builds(lambda amount: WithdrawAsset((native(amount),)), amounts),
    st.builds(lambda amount: DepositAsset(Definite((native(amount),)), OTHER), amounts),
    st.builds(lambda amount: TransferAsset((native(amount),), OTHER), amounts),
    st.builds(lambda fees, weight: BuyExecution(native(fees), Weight(weight, 0)), amounts, amounts),
    st.builds(lambda fees: PayFees(native(fees)), amounts),
    st.builds(Trap, st.just(1)),
    st.sampled_from([RefundSurplus(), DepositAsset(ALL, OTHER)]),
)


@given(st.lists(steps, max_size=8))
def test_no_unit_is_made_or_lost(message: Xcm) -> None:
    traders: list[FixedRateTrader] = []

    def trader() -> FixedRateTrader:
        traders.append(rate())
        return traders[-1]

    ledger = funded(200)
    executor = XcmExecutor(
        AllowUnpaidExecutionFrom(Everything()), broadcast=NoBroadcast(), assets=ledger, trader=trader
    )
    outcome = executor.prepare_and_execute(PARA, message)
    assert isinstance(outcome, Complete | Incomplete)
    trapped = sum(asset.amount for asset in outcome.trapped)
    assert sum(ledger.amounts.values()) + trapped + sum(seller.paid for seller in traders) == 200
