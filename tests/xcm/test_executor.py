"""The executor: publishing, origins, weights, and what stays done when an instruction fails."""

import pickle

import pytest
from msgspec.structs import replace

from relaycast_xcm import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    BadOrigin,
    ClearError,
    ClearOrigin,
    ClearTopic,
    Complete,
    DescendOrigin,
    Error,
    Everything,
    Incomplete,
    InstructionError,
    Location,
    NoBroadcast,
    NoPermission,
    OnlyParachains,
    OriginKind,
    PalletInstance,
    Parachain,
    ParachainBroadcastAdapter,
    ParaId,
    Properties,
    Publish,
    PublishFailed,
    PublishItem,
    PublishItems,
    PublishWeight,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    StackLimitReached,
    TakeWeightCredit,
    TrailingSetTopicAsId,
    Transact,
    Trap,
    Unimplemented,
    UnpaidExecution,
    Weigher,
    Weight,
    WeightLimitReached,
    Xcm,
    XcmExecutor,
    publisher_of,
)
from relaycast_xcm.weigher import TEST_WEIGHTS, WESTEND_WEIGHTS
from relaycast_xcm.xcm_error import (
    XCM_ERRORS,
    Barrier,
    ExceedsStackLimit,
    LocationFull,
    Trapped,
    WeightNotComputable,
    XcmError,
)
from xcm.in_memory import PublisherUnknown, Store

PARA_1000, PARA_2000, PARA_3000 = (Location.parachain(para) for para in (1_000, 2_000, 3_000))
KEY, OTHER_KEY = bytes(32), bytes([1]) * 32
TOPIC = bytes([7]) * 32


def chain(store: Store, *, weigher: Weigher = TEST_WEIGHTS) -> XcmExecutor:
    """Return an executor that lets every message in and publishes for any parachain."""
    barrier = AllowUnpaidExecutionFrom(Everything())
    return XcmExecutor(barrier, broadcast=ParachainBroadcastAdapter(Everything(), store), weigher=weigher)


def failed(used: int, index: int, error: XcmError) -> Incomplete:
    return Incomplete(Weight(used, used), InstructionError(index, error))


@pytest.mark.upstream("publish_from_parachain_works")
@pytest.mark.upstream("publish_from_system_parachain_works")
def test_a_parachain_publishes_and_uses_the_weight_of_one_instruction() -> None:
    store = Store()
    outcome = chain(store).prepare_and_execute(PARA_1000, (Publish(KEY, b"value1", 0),), weight_limit=Weight(10, 10))
    assert outcome == Complete(Weight(10, 10))
    assert store.stored == {(1_000, KEY): (b"value1", 0)}


@pytest.mark.upstream("publish_from_non_parachain_fails")
@pytest.mark.upstream("publish_from_account_origin_fails")
@pytest.mark.parametrize("origin", [Location.parent(), Location.here(), Location.account(bytes(32))])
def test_what_is_no_parachain_has_a_bad_origin(origin: Location) -> None:
    store = Store()
    outcome = chain(store).prepare_and_execute(origin, (Publish(KEY, b"value", 0),), weight_limit=Weight(10, 10))
    assert outcome == failed(10, 0, BadOrigin())
    assert store.stored == {}


@pytest.mark.upstream("publish_without_origin_fails")
def test_a_message_without_origin_publishes_nothing() -> None:
    store = Store()
    message: Xcm = (ClearOrigin(), Publish(KEY, b"value", 0))
    outcome = chain(store).prepare_and_execute(PARA_1000, message, weight_limit=Weight(20, 20))
    assert outcome == failed(20, 1, BadOrigin())
    assert store.stored == {}


@pytest.mark.upstream("publish_multiple_items_works")
def test_several_items_are_published_in_one_message() -> None:
    items = (Publish(KEY, b"a", 1), Publish(OTHER_KEY, b"b", 2))
    store = Store()
    assert chain(store).prepare_and_execute(PARA_1000, items) == Complete(Weight(20, 20))
    assert store.stored == {(1_000, KEY): (b"a", 1), (1_000, OTHER_KEY): (b"b", 2)}


@pytest.mark.upstream("publish_multiple_items_works")
def test_an_earlier_draft_publishes_several_items_in_one_instruction() -> None:
    store = Store()
    items = PublishItems((PublishItem(KEY, b"a"), PublishItem(OTHER_KEY, b"b")))
    assert chain(store).prepare_and_execute(PARA_1000, (items,)) == Complete(Weight(10, 10))
    assert store.stored == {(1_000, KEY): (b"a", 0), (1_000, OTHER_KEY): (b"b", 0)}
    short = PublishItems((PublishItem(KEY, b"c"), PublishItem(b"short", b"d")))
    assert chain(store).prepare_and_execute(PARA_1000, (short,)) == failed(10, 0, Unimplemented())
    assert store.stored[1_000, KEY] == (b"a", 0)


def test_items_are_published_all_or_none() -> None:
    """The handler refuses the third item; the first two are taken back."""
    store = Store(most=2)
    three = PublishItems(tuple(PublishItem(bytes([number]) * 32, b"v") for number in range(3)))
    outcome = chain(store).prepare_and_execute(PARA_1000, (three,))
    assert outcome == failed(10, 0, PublishFailed())
    assert store.stored == {}


@pytest.mark.upstream("publish_from_non_system_parachain_registered")
def test_a_registered_public_parachain_publishes() -> None:
    store = Store(frozenset({2_000}))
    assert chain(store).prepare_and_execute(PARA_2000, (Publish(KEY, b"v", 5),)) == Complete(Weight(10, 10))
    assert store.stored == {(2_000, KEY): (b"v", 5)}


@pytest.mark.upstream("publish_from_non_system_parachain_unregistered")
@pytest.mark.upstream("broadcast_handler_error_propagates")
def test_the_handlers_own_error_stays_on_the_outcome() -> None:
    store = Store(frozenset({2_000}))
    outcome = chain(store).prepare_and_execute(PARA_3000, (Publish(KEY, b"v", 0),))
    assert outcome == failed(10, 0, PublishFailed())
    assert isinstance(outcome, Incomplete)
    assert isinstance(outcome.error.cause, PublisherUnknown)
    assert outcome.error.cause.args == (ParaId(3_000),)
    assert str(outcome.error) == "instruction 0 failed with PublishFailed, PublisherUnknown: 3000"
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert store.stored == {}


def test_earlier_publications_stay_when_a_later_instruction_fails() -> None:
    store = Store()
    message: Xcm = (Publish(KEY, b"stays", 0), Trap(42), Publish(OTHER_KEY, b"never", 0))
    outcome = chain(store).prepare_and_execute(PARA_1000, message)
    assert outcome == failed(20, 1, Trapped(42))  # the third instruction's weight is given back
    assert store.stored == {(1_000, KEY): (b"stays", 0)}


@pytest.mark.upstream("publish_from_direct_parachain_works")
def test_the_adapter_knows_the_publisher_of_a_direct_parachain() -> None:
    store = Store(frozenset({2_000}))
    ParachainBroadcastAdapter(OnlyParachains(), store).handle_publish(PARA_2000, KEY, b"v", 9)
    assert store.stored == {(ParaId(2_000), KEY): (b"v", 9)}


@pytest.mark.upstream("publish_from_sibling_parachain_fails")
@pytest.mark.upstream("publish_from_non_parachain_fails")
@pytest.mark.parametrize(
    "origin", [Location.sibling(2_000), Location(1, (Parachain(2_000), PalletInstance(1))), Location.here()]
)
def test_the_adapter_gives_no_permission_to_what_its_filter_misses(origin: Location) -> None:
    store = Store(frozenset({2_000}))
    with pytest.raises(NoPermission):
        ParachainBroadcastAdapter(OnlyParachains(), store).handle_publish(origin, KEY, b"v", 0)
    assert store.stored == {}


@pytest.mark.parametrize(
    ("origin", "publisher"),
    [
        (PARA_2000, 2_000),
        (Location.sibling(2_000), 2_000),
        (Location(1, (Parachain(2_000), PalletInstance(1))), 2_000),  # inside a sibling
        (Location(0, (Parachain(2_000), PalletInstance(1))), None),  # inside a child: not the parachain itself
        (Location(2, (Parachain(2_000),)), None),
        (Location(0, (PalletInstance(1), Parachain(2_000))), None),
        (Location.parent(), None),
    ],
)
def test_a_publisher_is_a_child_itself_or_anything_of_a_sibling(origin: Location, publisher: int | None) -> None:
    assert publisher_of(origin) == publisher


def test_a_descended_origin_publishes_for_nobody() -> None:
    store = Store()
    message: Xcm = (DescendOrigin((PalletInstance(1),)), Publish(KEY, b"v", 0))
    assert chain(store).prepare_and_execute(PARA_1000, message) == failed(20, 1, BadOrigin())
    assert store.stored == {}


def test_a_refused_message_runs_nothing_and_keeps_the_barriers_word() -> None:
    store = Store()
    adapter = ParachainBroadcastAdapter(Everything(), store)
    executor = XcmExecutor(AllowPublishFrom(OnlyParachains(), 1), broadcast=adapter)
    outcome = executor.prepare_and_execute(PARA_1000, (Publish(KEY, b"v", 0),) * 2)
    assert outcome == Error(Barrier())
    assert isinstance(outcome, Error)
    assert outcome.cause == StackLimitReached()
    assert store.stored == {}


def test_a_message_above_its_weight_limit_runs_nothing() -> None:
    store = Store()
    outcome = chain(store).prepare_and_execute(PARA_1000, (Publish(KEY, b"v", 0),), weight_limit=Weight(9, 10))
    assert outcome == Error(WeightLimitReached(Weight(10, 10)))
    assert store.stored == {}


def test_weight_credit_pays_for_a_message() -> None:
    executor = XcmExecutor(TakeWeightCredit(), broadcast=NoBroadcast())
    message = (Publish(KEY, b"v", 0),)
    assert executor.prepare_and_execute(PARA_1000, message, weight_credit=Weight(10, 10)) == Complete(Weight(10, 10))
    assert executor.prepare_and_execute(PARA_1000, message, weight_credit=Weight(9, 9)) == Error(Barrier())


@pytest.mark.upstream("publish_weight_scales_with_data")
def test_the_weight_of_a_publish_grows_with_its_value() -> None:
    weigher = Weigher(Weight(10, 10), PublishWeight(base=Weight(100, 0), per_byte=Weight(3, 1)))
    weights = [weigher.weigh((Publish(KEY, bytes(size), 0),)) for size in (0, 1, 2_048)]
    assert weights == [Weight(100, 0), Weight(103, 1), Weight(100 + 3 * 2_048, 2_048)]


@pytest.mark.upstream("publish_weight_scales_with_keys")
def test_the_weight_of_a_message_grows_with_its_keys() -> None:
    assert WESTEND_WEIGHTS.weigh((Publish(KEY, b"v", 0),)) == Weight(15_000_000)
    assert WESTEND_WEIGHTS.weigh((Publish(KEY, b"v", 0),) * 3) == Weight(45_000_000)
    three = PublishItems((PublishItem(KEY, b"v"),) * 3)
    assert WESTEND_WEIGHTS.weigh((three,)) == Weight(10_000_000 + 3 * 5_000_000)


def test_some_instructions_have_a_price_of_their_own() -> None:
    weigher = Weigher(Weight(10, 10), prices={ClearOrigin: Weight(1, 0)})
    assert weigher.weigh((ClearOrigin(), ClearTopic(), Publish(KEY, b"", 0))) == Weight(21, 20)


def test_a_nested_message_weighs_what_its_instructions_weigh() -> None:
    message = (SetAppendix((ClearOrigin(), SetErrorHandler((Trap(1),)))),)
    assert TEST_WEIGHTS.weigh(message) == Weight(40, 40)
    with pytest.raises(ExceedsStackLimit):
        replace(TEST_WEIGHTS, max_instructions=3).weigh(message)


def test_messages_side_by_side_share_one_limit_of_instructions() -> None:
    message = (SetErrorHandler((ClearOrigin(),) * 2), SetAppendix((ClearOrigin(),) * 2))
    assert replace(TEST_WEIGHTS, max_instructions=6).weigh(message) == Weight(60, 60)
    with pytest.raises(ExceedsStackLimit):
        replace(TEST_WEIGHTS, max_instructions=5).weigh(message)


def test_a_call_weighs_what_it_says_and_nothing_can_be_told_of_one_that_says_nothing() -> None:
    call = Transact(OriginKind.NATIVE, Weight(5, 6), b"\x01\x02")
    assert TEST_WEIGHTS.weigh((call,)) == Weight(15, 16)
    store = Store()
    silent = replace(call, fallback_max_weight=None)
    assert chain(store).prepare_and_execute(PARA_1000, (silent,)) == Error(WeightNotComputable())
    assert chain(store).prepare_and_execute(PARA_1000, (call,)) == Incomplete(
        Weight(15, 16), InstructionError(0, Unimplemented())
    )


def test_unpaid_execution_may_check_who_sends() -> None:
    store = Store()
    right: Xcm = (UnpaidExecution(None, PARA_1000), Publish(KEY, b"v", 0))
    assert chain(store).prepare_and_execute(PARA_1000, right) == Complete(Weight(20, 20))
    wrong: Xcm = (UnpaidExecution(None, PARA_2000), Publish(OTHER_KEY, b"v", 0))
    assert chain(store).prepare_and_execute(PARA_1000, wrong) == failed(10, 0, BadOrigin())
    assert list(store.stored) == [(1_000, KEY)]


def test_an_origin_descends_until_it_is_full_and_not_without_being_there() -> None:
    eight = DescendOrigin((PalletInstance(1),) * 8)
    assert chain(Store()).prepare_and_execute(PARA_1000, (eight,)) == failed(10, 0, LocationFull())
    gone: Xcm = (ClearOrigin(), DescendOrigin((PalletInstance(1),)))
    assert chain(Store()).prepare_and_execute(PARA_1000, gone) == failed(20, 1, BadOrigin())


def test_an_error_handler_runs_after_an_error_and_its_weight_counts() -> None:
    store = Store()
    message: Xcm = (SetErrorHandler((Publish(KEY, b"handled", 0), ClearError())), Trap(1), ClearTopic())
    assert chain(store).prepare_and_execute(PARA_1000, message) == Complete(Weight(40, 40))
    assert store.stored == {(1_000, KEY): (b"handled", 0)}


def test_an_error_handler_that_is_not_needed_gives_its_weight_back() -> None:
    store = Store()
    message: Xcm = (SetErrorHandler((Publish(KEY, b"handled", 0),)), ClearTopic())
    assert chain(store).prepare_and_execute(PARA_1000, message) == Complete(Weight(20, 20))
    assert store.stored == {}


def test_an_appendix_runs_after_success_and_after_failure() -> None:
    store = Store()
    appendix = SetAppendix((Publish(KEY, b"appended", 0),))
    assert chain(store).prepare_and_execute(PARA_1000, (appendix,)) == Complete(Weight(20, 20))
    assert store.stored == {(1_000, KEY): (b"appended", 0)}
    store.stored.clear()
    outcome = chain(store).prepare_and_execute(PARA_1000, (appendix, Trap(3)))
    assert outcome == failed(30, 1, Trapped(3))
    assert store.stored == {(1_000, KEY): (b"appended", 0)}


def test_setting_an_appendix_again_gives_the_first_ones_weight_back() -> None:
    message: Xcm = (SetAppendix((Trap(1), Trap(2))), SetAppendix(()))
    assert chain(Store()).prepare_and_execute(PARA_1000, message) == Complete(Weight(20, 20))


def test_a_topic_at_the_end_becomes_the_id_of_the_message() -> None:
    executor = XcmExecutor(TrailingSetTopicAsId(AllowUnpaidExecutionFrom(Everything())), broadcast=NoBroadcast())
    properties = Properties()
    message: Xcm = (ClearTopic(), SetTopic(TOPIC))
    assert executor.execute(PARA_1000, message, Weight(20, 20), properties) == Complete(Weight(20, 20))
    assert properties.message_id == TOPIC


def test_the_errors_of_v5_have_their_indices() -> None:
    assert len(XCM_ERRORS) == 41
    assert {XCM_ERRORS[index].__name__ for index in (0, 6, 21, 32, 35)} == {
        "Overflow",
        "BadOrigin",
        "Trapped",
        "NoPermission",
        "TooManyAssets",
    }
    assert Trapped(7).name == "Trap"
    assert Trapped(7) == Trapped(7) != Trapped(8)
    assert pickle.loads(pickle.dumps(Trapped(7))) == Trapped(7)
    assert PublishFailed.index is None
