"""The executor: publishing, origins, weights, and what stays done when an instruction fails."""

import pickle
from collections.abc import Iterator
from random import Random

import pytest
from msgspec.structs import replace

from relaycast_xcm import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    ClearError,
    ClearOrigin,
    ClearTopic,
    Complete,
    DescendOrigin,
    Error,
    Everything,
    Incomplete,
    Instruction,
    InstructionError,
    Location,
    NoBroadcast,
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
from relaycast_xcm.exceptions import (
    XCM_ERRORS,
    Barrier,
    ExceedsStackLimit,
    Trapped,
    WeightNotComputable,
    XcmError,
)
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import U64_MAX
from relaycast_xcm.weigher import TEST_WEIGHTS, WESTEND_WEIGHTS
from vector_fields import VectorSource, VectorWeight, hexed, scenario
from xcm.in_memory import PublisherUnknown, Store
from xcm.message_vectors import (
    ACCOUNT,
    EVERYTHING,
    PARA_1000,
    PARA_2000,
    PLACES,
    XcmExecution,
    XcmFilter,
    XcmVector,
    ending,
    location_json,
)
from yielded_vectors import yields

PARA_3000 = Location.parachain(3_000)
KEY, OTHER_KEY = bytes(32), bytes([1]) * 32
TOPIC = bytes([7]) * 32
UNIT = Weight(10, 10)


def chain(store: Store, *, weigher: Weigher = TEST_WEIGHTS) -> XcmExecutor:
    """Return an executor that lets every message in and publishes for any parachain."""
    barrier = AllowUnpaidExecutionFrom(Everything())
    return XcmExecutor(barrier, broadcast=ParachainBroadcastAdapter(Everything(), store), weigher=weigher)


def failed(used: int, index: int, error: XcmError) -> Incomplete:
    return Incomplete(Weight(used, used), InstructionError(index, error))


def published(number: int = 1) -> Publish:
    return Publish(bytes([number]) * 32, bytes([number]), number)


def ended(vector: XcmExecution) -> str:
    """Return the publications that are accepted, and the error where there is one."""
    found = ending(vector)
    numbers = [str(int(it.value, 16)) for it in found.published if it.accepted]
    return " ".join([*numbers, *([] if found.error is None else [found.error])])


def executed(
    name: str,
    why: str,
    source: VectorSource,
    *message: Instruction,
    origin: Location = PARA_2000,
    unit: Weight = UNIT,
    limit: Weight = Weight.MAX,
    refuses: tuple[int, ...] = (),
    publishers: XcmFilter | None = None,
    ends: str | None = None,
) -> XcmExecution:
    """Return the vector of a message that is executed, and check what ``ended`` says of it."""
    vector = XcmExecution(
        id=f"xcm/execution/{name}",
        why=why,
        source=source,
        origin=location_json(origin),
        message=hexed(V5.encode(message)),
        unit=VectorWeight.of(unit),
        weight_limit=VectorWeight.of(limit),
        refuses=list(refuses),
        publishers=publishers,
    )
    assert ends in {None, ended(vector)}
    return vector


NO_PARACHAIN = VectorSource(upstream="publish_from_non_parachain_fails")


@yields("xcm/executions")
@pytest.mark.upstream("publish_from_parachain_works")
@pytest.mark.upstream("publish_from_system_parachain_works")
@pytest.mark.upstream("publish_from_direct_parachain_works")
@pytest.mark.upstream("publish_from_sibling_parachain_fails")
@pytest.mark.parametrize("place", PLACES)
def test_a_parachain_publishes_and_no_other_origin_is_permitted_to(place: str) -> Iterator[XcmVector]:
    origin, ends = PLACES[place], "1" if place in {"system", "last-system", "public"} else "NoPermission"
    yield executed(f"from-{place}", f"{origin} publishes", NO_PARACHAIN, published(), origin=origin, ends=ends)


@yields("xcm/executions")
@pytest.mark.upstream("publish_from_account_origin_fails")
@pytest.mark.parametrize(
    ("name", "origin", "publisher"),
    [
        ("relay", PLACES["relay"], None),
        ("parent", PLACES["parent"], None),
        ("system", PLACES["system"], 1_000),
        ("last-system", PLACES["last-system"], 1_999),
        ("public", PLACES["public"], 2_000),
        ("sibling", PLACES["sibling"], 2_000),
        ("inside", PLACES["inside"], None),  # not the parachain itself
        ("account", PLACES["account"], None),
        ("sibling-inside", Location.new(1, (Parachain(2_000), ACCOUNT)), 2_000),
        ("grandparent", Location.new(2, Parachain(9)), None),
    ],
)
def test_a_publisher_is_a_child_itself_or_anything_of_a_sibling(
    name: str, origin: Location, publisher: int | None
) -> Iterator[XcmVector]:
    assert publisher_of(origin) == publisher
    why = f"{origin} publishes where every origin may: it must resolve to a parachain"
    name, ends = f"any-origin-{name}", "BadOrigin" if publisher is None else "1"
    yield executed(name, why, NO_PARACHAIN, published(), origin=origin, publishers=EVERYTHING, ends=ends)


def test_a_parachain_below_another_junction_is_no_publisher() -> None:
    assert publisher_of(Location(0, (PalletInstance(1), Parachain(2_000)))) is None


WITHOUT = VectorSource(upstream="publish_without_origin_fails")
LOST = (published(), ClearOrigin(), published(2))
INSIDE, CHECKING = DescendOrigin((ACCOUNT,)), UnpaidExecution(None, PARA_2000)


@yields("xcm/executions")
@pytest.mark.parametrize(
    ("name", "why", "message", "ends"),
    [
        ("no-origin", "a Publish after ClearOrigin", (ClearOrigin(), published()), "BadOrigin"),
        ("origin-lost", "a Publish before and one after ClearOrigin", LOST, "1 BadOrigin"),
        ("descended", "an account inside a parachain is no publisher", (INSIDE, published()), "NoPermission"),
        ("descended-nowhere", "an empty interior changes nothing", (DescendOrigin(()), published()), "1"),
        ("descended-without", "no origin can descend", (ClearOrigin(), INSIDE), "BadOrigin"),
        ("unpaid-cleared", "a cleared origin is no origin", (ClearOrigin(), CHECKING), "BadOrigin"),
    ],
)
def test_an_origin_that_is_lost_or_descends_publishes_no_more(
    name: str, why: str, message: Xcm, ends: str
) -> Iterator[XcmVector]:
    yield executed(name, why, WITHOUT, *message, ends=ends)


@yields("xcm/executions")
def test_an_origin_descends_until_it_is_full() -> Iterator[XcmVector]:
    full, deep = (DescendOrigin((PalletInstance(1),) * count) for count in (7, 8))
    yield executed("descended-to-8", "eight junctions are the limit of a location", WITHOUT, full)
    yield executed("descended-too-deep", "nine junctions are too many", WITHOUT, deep, published(), ends="LocationFull")


@yields("xcm/executions")
@pytest.mark.parametrize(
    ("name", "checked", "ends"), [("same", PARA_2000, "1"), ("other", PARA_1000, "BadOrigin"), ("none", None, "1")]
)
def test_unpaid_execution_may_check_who_sends(name: str, checked: Location | None, ends: str) -> Iterator[XcmVector]:
    why = "UnpaidExecution checks the origin if it is told to"
    yield executed(f"unpaid-{name}", why, WITHOUT, UnpaidExecution(None, checked), published(), ends=ends)


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


@yields("xcm/executions")
def test_the_first_refusal_of_the_broadcaster_ends_a_message() -> Iterator[XcmVector]:
    unregistered = scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
    why = "the broadcaster refuses, and its error is the cause"
    yield executed("unregistered", why, unregistered, published(), refuses=(2_000,))
    why, both = "the first refusal ends the message", (published(), published(2))
    yield executed("unregistered-second", why, unregistered, *both, refuses=(2_000,))


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


STAYS = VectorSource(upstream="broadcast_handler_error_propagates")


@yields("xcm/executions")
@pytest.mark.parametrize(("at", "ends"), [(0, "Trap"), (1, "1 Trap"), (2, "1 2 Trap"), (3, "1 2 3 Trap")])
def test_earlier_publications_stay_when_a_later_instruction_fails(at: int, ends: str) -> Iterator[XcmVector]:
    message: list[Instruction] = [published(1), published(2), published(3)]
    message.insert(at, Trap(5))
    yield executed(f"trap-at-{at}", f"{at} of 3 publications come before the trap", STAYS, *message, ends=ends)


@yields("xcm/executions")
def test_topics_and_an_empty_message_change_nothing() -> Iterator[XcmVector]:
    yield executed("empty", "a message without instructions is complete and weighs nothing", STAYS)
    topics = (SetTopic(TOPIC), published(), ClearTopic(), published(2))
    yield executed("topics", "topics change nothing here", STAYS, *topics)


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


LIMITED = VectorSource(upstream="publish_from_parachain_works")


@yields("xcm/executions")
@pytest.mark.upstream("publish_multiple_items_works")
@pytest.mark.upstream("publish_from_non_system_parachain_registered")
@pytest.mark.parametrize(
    ("name", "limit", "ends"),
    [
        ("exact", Weight(20, 20), "1 2"),
        ("less-time", Weight(19, 20), "WeightLimitReached"),
        ("less-proof", Weight(20, 19), "WeightLimitReached"),
        ("none", Weight.ZERO, "WeightLimitReached"),
    ],
)
def test_two_publications_need_a_limit_of_their_weight(name: str, limit: Weight, ends: str) -> Iterator[XcmVector]:
    why = f"a limit of {limit} for {Weight(20, 20)}"
    yield executed(f"limit-{name}", why, LIMITED, published(1), published(2), limit=limit, ends=ends)


@yields("xcm/executions")
def test_weights_of_nested_instructions_count_and_add_up_to_the_largest_u64_at_most() -> Iterator[XcmVector]:
    nested = SetAppendix((published(1), published(2)))
    yield executed("limit-nested", "what is inside counts", LIMITED, nested, limit=Weight(29, 29))
    yield executed("limit-nested-exact", "three instructions in all", LIMITED, nested, limit=Weight(30, 30))
    three, huge = map(published, (1, 2, 3)), Weight(U64_MAX // 2, 1)
    yield executed("saturates", "weights add up to the largest u64 at most", LIMITED, *three, unit=huge)


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


REGISTERS = VectorSource(trap="handlers, appendices and their weight")
HANDLER, APPENDIX = SetErrorHandler((published(8),)), SetAppendix((published(9),))
CLEARING = SetErrorHandler((ClearError(), published(8)))
FAILING = SetAppendix((published(9), Trap(2), published(10)))
NESTED = SetErrorHandler((SetErrorHandler((published(7),)), Trap(3)))


@yields("xcm/executions")
@pytest.mark.parametrize(
    ("name", "message", "used", "ends"),
    [
        ("handler-unused", (HANDLER, published()), 20, "1"),
        ("handler-used", (HANDLER, published(), Trap(1), published(2)), 40, "1 8 Trap"),
        ("handler-clears", (CLEARING, Trap(1), published(2)), 40, "8"),
        ("handler-replaced", (HANDLER, SetErrorHandler((published(7),)), Trap(1)), 40, "7 Trap"),
        ("handler-empty", (SetErrorHandler(()), Trap(1)), 20, "Trap"),
        ("handler-too-late", (Trap(1), HANDLER), 10, "Trap"),
        ("handler-fails", (SetErrorHandler((Trap(3), published(8))), APPENDIX, Trap(1)), 50, "9 Trap"),
        ("handler-sets-handler", (NESTED, Trap(1)), 50, "7 Trap"),
        ("appendix", (APPENDIX, published()), 30, "1 9"),
        ("appendix-after-trap", (APPENDIX, Trap(1)), 30, "9 Trap"),
        ("appendix-replaced", (APPENDIX, SetAppendix((published(7),))), 30, "7"),
        ("appendix-fails", (FAILING, published()), 40, "1 9 Trap"),
        ("appendix-fails-too", (FAILING, Trap(1)), 40, "9 Trap"),
        ("appendix-of-appendix", (SetAppendix((SetAppendix((published(7),)), published(8))),), 40, "8 7"),
        ("appendix-clears", (SetAppendix((ClearError(),)), Trap(1)), 30, ""),
        ("appendix-and-handler", (APPENDIX, HANDLER, Trap(1)), 50, "8 9 Trap"),
        ("appendix-and-handler-unused", (APPENDIX, HANDLER, published()), 40, "1 9"),
        ("origin-in-appendix", (APPENDIX, ClearOrigin()), 30, "BadOrigin"),
        ("error-cleared-early", (ClearError(), Trap(1)), 20, "Trap"),
        ("skipped-handler", (Trap(1), HANDLER, APPENDIX, published()), 10, "Trap"),
    ],
)
def test_a_handler_runs_after_an_error_an_appendix_always_and_weight_that_is_not_used_comes_back(
    name: str, message: Xcm, used: int, ends: str
) -> Iterator[XcmVector]:
    vector = executed(name, f"registers of the executor: {name}", REGISTERS, *message)
    assert (ended(vector), ending(vector).used) == (ends, VectorWeight(used, used))
    yield vector


@yields("xcm/executions")
@pytest.mark.parametrize("number", range(20))
def test_a_random_message_ends_as_its_vector_says(number: int) -> Iterator[XcmVector]:
    random = Random(f"execution 7 {number}")
    message, refuses = drawn(random, 6, depth=2), random.choice(((), (), (2_000,)))
    yield executed(f"random-{number}", f"a random message, number {number}", REGISTERS, *message, refuses=refuses)


def drawn(random: Random, most: int, *, depth: int) -> Xcm:
    kinds = ["publish"] * 4 + ["trap", "clear error", "topic"] + (["handler", "appendix"] * 2 if depth else [])
    message: list[Instruction] = []
    for kind in random.choices(kinds, k=random.randrange(1, most + 1)):
        inner = drawn(random, 3, depth=depth - 1) if kind in {"handler", "appendix"} else ()
        message.append(
            {
                "publish": published(random.randrange(1, 6)),
                "trap": Trap(random.randrange(9)),
                "clear error": ClearError(),
                "topic": SetTopic(TOPIC),
                "handler": SetErrorHandler(inner),
                "appendix": SetAppendix(inner),
            }[kind]
        )
    return tuple(message)


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
