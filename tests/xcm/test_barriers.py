"""Barriers: who may run what without payment, in which order they are asked, and what they say."""

import pickle
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_xcm import (
    AllowExplicitUnpaidExecutionFrom,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    AllowUnpaidExecutionFrom,
    AnyOf,
    Asset,
    BadFormat,
    BarrierChain,
    BuyExecution,
    ClearOrigin,
    Complete,
    DescendOrigin,
    Equals,
    Everything,
    Instruction,
    IsChildSystemParachain,
    IsInVec,
    Location,
    NoBarrierAllows,
    Nothing,
    OnlyParachains,
    Overweight,
    PalletInstance,
    Parachain,
    ParachainBroadcastAdapter,
    PayFees,
    ProcessMessageError,
    Properties,
    Publish,
    PublishItem,
    PublishItems,
    SetTopic,
    ShouldExecute,
    StackLimitReached,
    TakeWeightCredit,
    TrailingSetTopicAsId,
    UnpaidExecution,
    Unsupported,
    Weight,
    WithComputedOrigin,
    WithdrawAsset,
    Xcm,
    XcmExecutor,
    assets,
)
from xcm.barrier_questions import (
    DEPOSIT,
    FUNDS,
    NATIVE,
    PARA_1000,
    PARA_2000,
    TOPIC,
    TRANSFER,
    WEIGHT,
    Recorder,
    ask,
    publish,
    refusal_of,
)
from xcm.in_memory import Store
from xcm.xcm_strategies import locations, messages


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier allows single Publish instruction")
@pytest.mark.upstream("allow_publish_from_allows_single_publish")
@pytest.mark.upstream("allow_publish_from_allows_non_system_parachain")
def test_one_publish_runs_without_payment() -> None:
    message = publish()
    assert ask(AllowPublishFrom(Everything(), 16), message) == message


@pytest.mark.upstream("allow_publish_from_allows_system_parachain")
def test_a_system_parachain_may_publish_without_payment() -> None:
    message = publish()
    assert ask(AllowPublishFrom(Everything()), message, origin=PARA_1000) == message
    assert ask(AllowPublishFrom(IsChildSystemParachain()), message, origin=PARA_1000) == message
    assert refusal_of(AllowPublishFrom(IsChildSystemParachain()), message) == Unsupported()


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit")
@pytest.mark.upstream("allow_publish_from_allows_multiple_publish_within_limit")
def test_three_publishes_run_without_payment_and_all_of_them_run() -> None:
    store = Store(frozenset({2_000}))
    barrier = AllowPublishFrom(Everything(), 16)
    executor = XcmExecutor(barrier, broadcast=ParachainBroadcastAdapter(OnlyParachains(), store))
    assert executor.prepare_and_execute(PARA_2000, publish(3)) == Complete(Weight(30, 30))
    assert list(store.stored) == [(2_000, bytes([number]) * 32) for number in range(3)]


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier rejects too many Publish instructions")
@pytest.mark.upstream("allow_publish_from_rejects_exceeding_max_publish")
def test_five_publishes_where_four_are_allowed_reach_the_stack_limit() -> None:
    assert refusal_of(AllowPublishFrom(Everything(), 4), publish(5)) == StackLimitReached()


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier allows exactly max Publish instructions")
@pytest.mark.upstream("allow_publish_from_allows_exactly_max_publish")
def test_four_publishes_where_four_are_allowed_run() -> None:
    assert ask(AllowPublishFrom(Everything(), 4), publish(4)) == publish(4)


def test_sixteen_publishes_run_where_nothing_else_was_said() -> None:
    assert ask(AllowPublishFrom(Everything()), publish(16)) == publish(16)
    assert refusal_of(AllowPublishFrom(Everything()), publish(17)) == StackLimitReached()


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier rejects Publish mixed with other instructions")
@pytest.mark.upstream("allow_publish_from_rejects_publish_with_other_instructions")
def test_a_publish_before_a_deposit_needs_another_barrier() -> None:
    message: Xcm = (*publish(), DEPOSIT)
    assert refusal_of(AllowPublishFrom(Everything(), 16), message) == BadFormat()
    assert refusal_of(AllowPublishFrom(Everything(), 16), (*publish(), SetTopic(TOPIC))) == BadFormat()
    paid: Xcm = (WithdrawAsset(FUNDS), BuyExecution(FUNDS[0], WEIGHT), *message)
    chain = BarrierChain(AllowPublishFrom(Everything(), 16), AllowTopLevelPaidExecutionFrom(Everything()))
    assert ask(chain, paid) == paid


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier rejects non-Publish messages")
@pytest.mark.upstream("allow_publish_from_rejects_non_publish")
def test_a_message_without_a_publish_has_a_bad_format() -> None:
    assert refusal_of(AllowPublishFrom(Everything(), 16), (TRANSFER,)) == BadFormat()
    assert refusal_of(AllowPublishFrom(Everything(), 16), (ClearOrigin(),)) == BadFormat()


@pytest.mark.upstream("allow_publish_from_rejects_other_before_publish")
def test_another_instruction_before_a_publish_has_a_bad_format() -> None:
    assert refusal_of(AllowPublishFrom(Everything(), 16), (ClearOrigin(), *publish())) == BadFormat()


@pytest.mark.upstream("allow_publish_from_rejects_empty_message")
def test_an_empty_message_has_a_bad_format() -> None:
    assert refusal_of(AllowPublishFrom(Everything(), 16), ()) == BadFormat()


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier filters by origin")
@pytest.mark.upstream("allow_publish_from_filters_specific_parachains")
def test_an_origin_outside_of_the_filter_is_unsupported() -> None:
    barrier = AllowPublishFrom(Equals(1_000), 16)
    assert ask(barrier, publish(), origin=PARA_1000) == publish()
    assert refusal_of(barrier, publish()) == Unsupported()


@pytest.mark.upstream("allow_publish_from_rejects_non_parachain_origin")
def test_the_filter_alone_decides_about_origins_that_are_no_parachain() -> None:
    # upstream's test says "rejects" and lets everything pass; the public plan asks for Unsupported
    parent = Location.parent()
    assert ask(AllowPublishFrom(Everything(), 16), publish(), origin=parent) == publish()
    assert refusal_of(AllowPublishFrom(OnlyParachains(), 16), publish(), origin=parent) == Unsupported()


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier combined with other barriers")
def test_the_first_barrier_that_allows_wins_and_the_next_is_not_asked() -> None:
    later = Recorder()
    chain = BarrierChain(AllowPublishFrom(Everything(), 16), later)
    assert ask(chain, publish()) == publish()
    assert later.asked == []
    with_payment = BarrierChain(AllowPublishFrom(Everything(), 16), AllowTopLevelPaidExecutionFrom(Everything()))
    assert ask(with_payment, publish()) == publish()


@pytest.mark.parametrize(
    ("origin", "message", "expected"),
    [
        (PARA_1000, (), Unsupported()),  # the origin is looked at before emptiness
        (PARA_1000, (*publish(5), DEPOSIT), Unsupported()),  # ... and before the length
        (PARA_2000, (*publish(4), DEPOSIT), StackLimitReached()),  # the length before what the instructions are
        (PARA_2000, (*publish(3), DEPOSIT), BadFormat()),
    ],
)
def test_the_checks_come_in_their_order(origin: Location, message: Xcm, expected: ProcessMessageError) -> None:
    assert refusal_of(AllowPublishFrom(Equals(2_000), 4), message, origin=origin) == expected


@given(locations, messages, st.integers(0, 6))
def test_free_execution_is_for_messages_of_publish_alone(origin: Location, message: Xcm, most: int) -> None:
    pure = all(isinstance(instruction, Publish) for instruction in message)
    allowed = origin == PARA_2000 and 0 < len(message) <= most and pure
    try:
        assert ask(AllowPublishFrom(Equals(PARA_2000), most), message, origin=origin) is message
    except ProcessMessageError:
        assert not allowed
    else:
        assert allowed


def test_the_publish_of_an_earlier_draft_counts_as_one() -> None:
    items = PublishItems((PublishItem(bytes(32), b"a"), PublishItem(bytes([1]) * 32, b"b")))
    assert ask(AllowPublishFrom(Everything(), 1), (items,)) == (items,)
    assert refusal_of(AllowPublishFrom(Everything(), 1), (items, items)) == StackLimitReached()


@pytest.mark.upstream("only_parachains_filter_works")
@pytest.mark.parametrize(
    ("location", "contained"),
    [
        (PARA_1000, True),
        (PARA_2000, True),
        (Location.sibling(2_000), False),
        (Location(0, (Parachain(2_000), PalletInstance(1))), False),
        (Location.parent(), False),
        (Location.here(), False),
        (Location.account(bytes(32)), False),
    ],
)
def test_only_parachains_means_the_relay_chains_own_and_nothing_inside(location: Location, contained: bool) -> None:
    assert OnlyParachains().contains(location) is contained


def test_filters_contain_what_they_say() -> None:
    two = IsInVec([1_000, Location.parent()])
    assert [two.contains(place) for place in (PARA_1000, Location.parent(), PARA_2000)] == [True, True, False]
    either = AnyOf(Equals(1_000), IsInVec([2_000]))
    assert [either.contains(place) for place in (PARA_1000, PARA_2000, NATIVE)] == [True, True, False]
    assert not Nothing().contains(NATIVE)
    assert not IsChildSystemParachain().contains(Location.sibling(1_000))
    assert repr(AllowPublishFrom(AnyOf(Equals(7), Everything()), 4)).startswith(
        "AllowPublishFrom(origins=AnyOf(Equals(Parachain(7)), Everything())"
    )


def test_weight_credit_is_taken_by_what_it_allows() -> None:
    properties = Properties(Weight(25, 25))
    assert TakeWeightCredit().should_execute(PARA_2000, publish(), WEIGHT, properties) == publish()
    assert properties.weight_credit == Weight(15, 15)
    with pytest.raises(Overweight) as refusal:
        TakeWeightCredit().should_execute(PARA_2000, publish(), Weight(15, 16), properties)
    assert refusal.value.required == Weight(15, 16)
    assert properties.weight_credit == Weight(15, 15)


@pytest.mark.parametrize(
    "limit",
    [WEIGHT, Weight(1_000, 1_000), None],  # exactly enough, more than enough, unlimited
)
def test_a_message_that_pays_buys_its_own_weight_and_no_more(limit: Weight | None) -> None:
    barrier = AllowTopLevelPaidExecutionFrom(Everything())
    message: Xcm = (WithdrawAsset(FUNDS), ClearOrigin(), BuyExecution(FUNDS[0], limit), *publish())
    assert ask(barrier, message) == (*message[:2], BuyExecution(FUNDS[0], WEIGHT), *publish())


PAY = BuyExecution(FUNDS[0], WEIGHT)
TWO = assets([Asset.fungible(PARA_1000, 1), *FUNDS])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ((), BadFormat()),
        (publish(), BadFormat()),  # nothing to pay with
        ((WithdrawAsset(FUNDS),), BadFormat()),  # no payment
        ((WithdrawAsset(FUNDS), DEPOSIT, PAY), Overweight(WEIGHT)),  # something else comes first
        ((WithdrawAsset(FUNDS), BuyExecution(FUNDS[0], Weight(9, 10))), Overweight(WEIGHT)),  # too little
        ((WithdrawAsset(FUNDS), DescendOrigin(()), PAY), Overweight(WEIGHT)),  # a descent to nowhere
        ((WithdrawAsset(FUNDS), *[ClearOrigin()] * 4, PAY), BadFormat()),  # payment beyond the fifth instruction
        ((WithdrawAsset(assets([*TWO, Asset.fungible(PARA_2000, 1)])), PAY), BadFormat()),  # three assets
    ],
)
def test_a_message_that_does_not_pay_first_is_refused(message: Xcm, expected: ProcessMessageError) -> None:
    assert refusal_of(AllowTopLevelPaidExecutionFrom(Everything()), message) == expected


def test_payment_may_follow_three_changes_of_origin_and_two_assets() -> None:
    message: Xcm = (WithdrawAsset(TWO), *[ClearOrigin()] * 2, DescendOrigin((PalletInstance(1),)), PAY)
    assert ask(AllowTopLevelPaidExecutionFrom(Everything()), message) == message
    fees: Xcm = (WithdrawAsset(FUNDS), PayFees(FUNDS[0]))
    assert ask(AllowTopLevelPaidExecutionFrom(Everything()), fees) == fees
    assert refusal_of(AllowTopLevelPaidExecutionFrom(Nothing()), fees) == Unsupported()


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (UnpaidExecution(), None),
        (UnpaidExecution(WEIGHT), None),
        (UnpaidExecution(Weight(9, 10)), Overweight(WEIGHT)),
        (ClearOrigin(), Overweight(WEIGHT)),
    ],
)
def test_unpaid_execution_has_to_be_asked_for(first: Instruction, expected: ProcessMessageError | None) -> None:
    barrier = AllowExplicitUnpaidExecutionFrom(Equals(2_000))
    message: Xcm = (first, *publish())
    if expected is None:
        assert ask(barrier, message) == message
    else:
        assert refusal_of(barrier, message) == expected
    assert refusal_of(barrier, message, origin=PARA_1000) == Unsupported()
    assert refusal_of(barrier, ()) == BadFormat()


def test_a_trusted_origin_may_run_anything() -> None:
    assert ask(AllowUnpaidExecutionFrom(Equals(2_000)), (TRANSFER,)) == (TRANSFER,)
    assert refusal_of(AllowUnpaidExecutionFrom(Equals(1_000)), (TRANSFER,)) == Unsupported()


def test_a_barrier_behind_a_descent_sees_the_descended_origin() -> None:
    inner = Recorder()
    message: Xcm = (DescendOrigin((PalletInstance(1),)), DescendOrigin((PalletInstance(2),)), *publish())
    assert ask(WithComputedOrigin(inner), message) == message
    assert inner.asked == [(Location(0, (Parachain(2_000), PalletInstance(1), PalletInstance(2))), publish())]


def test_a_barrier_looks_through_so_many_descents_and_no_more() -> None:
    inner = Recorder()
    step = DescendOrigin((PalletInstance(1),))
    assert ask(WithComputedOrigin(inner, 1), (step, step)) == (step, step)
    assert inner.asked == [(Location(0, (Parachain(2_000), PalletInstance(1))), (step,))]
    assert refusal_of(WithComputedOrigin(inner), (step,) * 8) == Unsupported()


def test_by_itself_a_barrier_looks_through_eight_descents() -> None:
    inner = Recorder()
    steps: Xcm = (DescendOrigin(()),) * 9
    assert ask(WithComputedOrigin(inner), steps) == steps
    assert inner.asked == [(PARA_2000, steps[8:])]


def test_a_descended_origin_is_no_parachain_and_publishes_nothing() -> None:
    barrier = WithComputedOrigin(AllowPublishFrom(OnlyParachains()))
    assert refusal_of(barrier, (DescendOrigin((PalletInstance(1),)), *publish())) == Unsupported()


def test_a_last_topic_is_the_messages_id_and_the_barrier_does_not_see_it() -> None:
    properties = Properties()
    message: Xcm = (*publish(), SetTopic(TOPIC))
    barrier = TrailingSetTopicAsId(AllowPublishFrom(OnlyParachains(), 1))
    assert barrier.should_execute(PARA_2000, message, WEIGHT, properties) == message
    assert properties.message_id == TOPIC
    assert ask(barrier, publish()) == publish()
    assert refusal_of(barrier, (SetTopic(TOPIC),)) == BadFormat()


def test_the_barriers_of_westend_let_a_publication_pass_after_the_paid_ones() -> None:
    westend = TrailingSetTopicAsId(
        BarrierChain(
            TakeWeightCredit(),
            WithComputedOrigin(
                BarrierChain(
                    AllowTopLevelPaidExecutionFrom(Everything()),
                    AllowExplicitUnpaidExecutionFrom(IsChildSystemParachain()),
                    AllowPublishFrom(OnlyParachains(), 16),
                )
            ),
        )
    )
    message: Xcm = (*publish(16), SetTopic(TOPIC))
    assert ask(westend, message) == message
    refusal = refusal_of(westend, (*publish(17), SetTopic(TOPIC)))
    assert isinstance(refusal, NoBarrierAllows)
    assert refusal.name == "Unsupported"


def test_a_chain_that_refuses_keeps_what_each_barrier_said() -> None:
    chain = BarrierChain(TakeWeightCredit(), AllowPublishFrom(Everything(), 4), AllowUnpaidExecutionFrom(Nothing()))
    refusal = refusal_of(chain, publish(5))
    assert isinstance(refusal, Unsupported)
    assert isinstance(refusal, NoBarrierAllows)
    assert refusal.refusals == (
        ("TakeWeightCredit", Overweight(WEIGHT)),
        ("AllowPublishFrom", StackLimitReached()),
        ("AllowUnpaidExecutionFrom", Unsupported()),
    )
    assert str(refusal).startswith("no barrier allows it: TakeWeightCredit says Overweight")
    assert pickle.loads(pickle.dumps(refusal)) == refusal
    assert isinstance(refusal_of(BarrierChain(), publish()), NoBarrierAllows)


@pytest.mark.parametrize(
    "barrier",
    [
        AllowPublishFrom(Everything()),
        TakeWeightCredit(),
        AllowTopLevelPaidExecutionFrom(Everything()),
        AllowExplicitUnpaidExecutionFrom(Everything()),
        AllowUnpaidExecutionFrom(Everything()),
        WithComputedOrigin(TakeWeightCredit()),
        TrailingSetTopicAsId(TakeWeightCredit()),
    ],
    ids=lambda barrier: type(barrier).__name__,
)
def test_a_barrier_is_a_value(barrier: ShouldExecute) -> None:
    assert {barrier, copy(barrier)} == {barrier}
