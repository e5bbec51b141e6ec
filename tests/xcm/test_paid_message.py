"""Paid messages: their instructions, what the relay chain weighs them at, and which barrier lets them in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_xcm import (
    MAX_INSTRUCTIONS_TO_DECODE,
    MAX_PAID_INSTRUCTIONS,
    POLKADOT_WEIGHTS,
    ROCKS_DB,
    V5,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    Asset,
    BarrierChain,
    BuyExecution,
    ClearOrigin,
    DepositAsset,
    Everything,
    Location,
    NoBarrierAllows,
    Properties,
    Publish,
    RefundSurplus,
    TakeWeightCredit,
    TransferAsset,
    Trap,
    Weight,
    Wild,
    WithComputedOrigin,
    WithdrawAsset,
    paid_message,
)
from relaycast_xcm.assets import All, AllCounted, Definite
from relaycast_xcm.weigher import WESTEND_WEIGHTS
from xcm.xcm_strategies import locations, publishes

PARA, HERE = Location.parachain(2_000), Location.here()
PUBLISH = Publish(bytes(32), b"5.31")


@given(st.lists(publishes, max_size=5), st.integers(1, 2**128 - 1), locations)
def test_a_paid_message_is_read_as_it_was_written_and_passes_the_barrier(
    instructions: list[Publish], fees: int, account: Location
) -> None:
    message = paid_message(instructions, fees=fees, account=account)
    assert V5.decode(V5.encode(message)) == message
    weight = POLKADOT_WEIGHTS.weigh(message)
    allowed = AllowTopLevelPaidExecutionFrom(Everything()).should_execute(PARA, message, weight, Properties())
    payment = allowed[1]
    assert isinstance(payment, BuyExecution)
    assert payment.weight_limit == weight, "it buys its own weight and no more"


def test_a_message_pays_for_what_a_receiver_decodes_and_no_more() -> None:
    largest = paid_message([ClearOrigin()] * MAX_PAID_INSTRUCTIONS, fees=1, account=PARA)
    assert V5.decode(V5.encode(largest)) == largest
    with pytest.raises(ValueError, match="at most 95 instructions, got 96"):
        paid_message([ClearOrigin()] * (MAX_PAID_INSTRUCTIONS + 1), fees=1, account=PARA)
    assert MAX_PAID_INSTRUCTIONS + 5 == MAX_INSTRUCTIONS_TO_DECODE


def test_the_weight_of_a_payment_is_what_polkadot_measured() -> None:
    message = paid_message([PUBLISH], fees=1, account=PARA)
    measured = 47_110_000 + 970_000 + 920_000 + 1_560_000 + 33_660_000
    accounts = ROCKS_DB.reads_writes(2, 2)
    expected = Weight(measured, 2 * 3_593) + accounts + WESTEND_WEIGHTS.weigh((PUBLISH,))
    assert POLKADOT_WEIGHTS.weigh(message) == expected


@pytest.mark.parametrize(
    ("assets", "times"),
    [
        ((), 0),
        ((Asset.fungible(HERE, 5),), 1),
    ],
)
def test_moving_assets_weighs_for_each_of_them(assets: tuple[Asset, ...], times: int) -> None:
    one = Weight(47_110_000, 3_593) + ROCKS_DB.reads_writes(1, 1)
    assert POLKADOT_WEIGHTS.weigh_instruction(WithdrawAsset(assets)) == one * times
    two = Weight(65_530_000, 6_196) + ROCKS_DB.reads_writes(2, 2)
    assert POLKADOT_WEIGHTS.weigh_instruction(TransferAsset(assets, PARA)) == two * times
    deposit = Weight(33_660_000, 3_593) + ROCKS_DB.reads_writes(1, 1)
    assert POLKADOT_WEIGHTS.weigh_instruction(DepositAsset(Definite(assets), PARA)) == deposit * times


def test_a_wildcard_means_the_one_asset_there_is() -> None:
    deposits = [DepositAsset(Wild(wild), PARA) for wild in (All(), AllCounted(1), AllCounted(9))]
    weights = {POLKADOT_WEIGHTS.weigh_instruction(deposit) for deposit in deposits}
    assert weights == {Weight(33_660_000, 3_593) + ROCKS_DB.reads_writes(1, 1)}


def test_an_asset_that_the_chain_does_not_know_weighs_all_there_is() -> None:
    token = Asset.fungible(Location.parachain(1_000), 1)
    assert POLKADOT_WEIGHTS.weigh((WithdrawAsset((Asset.fungible(HERE, 1), token)), RefundSurplus())) == Weight.MAX


def test_a_refusal_names_every_barrier_inside_others() -> None:
    paid = WithComputedOrigin(BarrierChain(AllowTopLevelPaidExecutionFrom(Everything())))
    chain = BarrierChain(TakeWeightCredit(), AllowPublishFrom(Everything()), paid)
    with pytest.raises(NoBarrierAllows) as refusal:
        chain.should_execute(PARA, (Trap(1),), Weight(1), Properties())
    assert str(refusal.value) == (
        "no barrier allows it: TakeWeightCredit says Overweight, AllowPublishFrom says BadFormat, "
        "WithComputedOrigin (AllowTopLevelPaidExecutionFrom says BadFormat)"
    )
