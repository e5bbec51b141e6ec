"""Barriers: who may run what without payment, in which order they are asked, and what they say."""

import pickle
from collections.abc import Iterator
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from relaycast_xcm import (
    AllowExplicitUnpaidExecutionFrom,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    AllowUnpaidExecutionFrom,
    AnyOf,
    Asset,
    BarrierChain,
    BuyExecution,
    ClearOrigin,
    Complete,
    DescendOrigin,
    Equals,
    Everything,
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
from relaycast_xcm.message import V5
from vector_fields import VectorSource, VectorWeight, hexed, scenario
from xcm.barrier_questions import (
    DEPOSIT,
    FUNDS,
    NATIVE,
    TOPIC,
    TRANSFER,
    WEIGHT,
    Recorder,
    ask,
    publish,
    refusal_of,
)
from xcm.in_memory import Store
from xcm.message_vectors import (
    ACCOUNT,
    EVERYTHING,
    PARA_1000,
    PARA_2000,
    PLACES,
    XcmBarrier,
    XcmBarrierAsked,
    XcmFilter,
    XcmVector,
    answer,
    barrier_of,
    location_json,
)
from xcm.xcm_strategies import locations, messages
from yielded_vectors import yields

NOTHING = XcmFilter("Nothing")
PAID = XcmBarrier("AllowTopLevelPaidExecutionFrom", EVERYTHING)
BUY, WITHDRAW = BuyExecution(FUNDS[0], None), WithdrawAsset(FUNDS)
DESCEND, SET_TOPIC = DescendOrigin((PalletInstance(1),)), SetTopic(TOPIC)


def allow_publish(maximum: int = 16, origins: XcmFilter = EVERYTHING) -> XcmBarrier:
    return XcmBarrier("AllowPublishFrom", origins, max_instructions=maximum)


def chain(*inner: XcmBarrier) -> XcmBarrier:
    return XcmBarrier("Chain", inner=list(inner))


def asked(
    name: str,
    why: str,
    source: VectorSource,
    barrier: XcmBarrier,
    message: Xcm,
    refused: str | None = None,
    *,
    origin: Location = PARA_2000,
    weight: Weight = WEIGHT,
    credit: Weight = Weight.ZERO,
) -> XcmBarrierAsked:
    """Return the vector of a barrier that allows a message, or is said to have ``refused`` it."""
    vector = XcmBarrierAsked(
        id=f"xcm/barrier/{name}",
        why=why,
        source=source,
        barrier=barrier,
        origin=location_json(origin),
        message=hexed(V5.encode(message)),
        weight=VectorWeight.of(weight),
        credit=VectorWeight.of(credit),
    )
    assert answer(vector).error == (UNSET if refused is None else refused)
    return vector


def executes(
    source: VectorSource, name: str, barrier: XcmBarrier, message: Xcm, refused: str | None = None
) -> XcmBarrierAsked:
    """Return the vector of a scenario of the specification."""
    return asked(f"scenario-{name}", f"the scenario: {source.scenario}", source, barrier, message, refused)


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_allows_single_publish")
@pytest.mark.upstream("allow_publish_from_allows_non_system_parachain")
def test_one_publish_runs_without_payment() -> Iterator[XcmVector]:
    source = scenario("AllowPublishFrom Barrier / Barrier allows single Publish instruction")
    yield executes(source, "single", allow_publish(), publish())


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_allows_multiple_publish_within_limit")
def test_three_publishes_run_without_payment_and_all_of_them_run() -> Iterator[XcmVector]:
    store, barrier = Store(frozenset({2_000})), allow_publish()
    executor = XcmExecutor(barrier_of(barrier), broadcast=ParachainBroadcastAdapter(OnlyParachains(), store))
    assert executor.prepare_and_execute(PARA_2000, publish(3)) == Complete(Weight(30, 30))
    assert list(store.stored) == [(2_000, bytes([number]) * 32) for number in range(3)]
    source = scenario("AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit")
    yield executes(source, "several", barrier, publish(3))


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_rejects_exceeding_max_publish")
def test_five_publishes_where_four_are_allowed_reach_the_stack_limit() -> Iterator[XcmVector]:
    source = scenario("AllowPublishFrom Barrier / Barrier rejects too many Publish instructions")
    yield executes(source, "too-many", allow_publish(4), publish(5), "StackLimitReached")


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_allows_exactly_max_publish")
def test_four_publishes_where_four_are_allowed_run() -> Iterator[XcmVector]:
    source = scenario("AllowPublishFrom Barrier / Barrier allows exactly max Publish instructions")
    yield executes(source, "exactly", allow_publish(4), publish(4))


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_rejects_empty_message")
@pytest.mark.parametrize("limit", [0, 1, 16])
def test_as_many_publishes_run_as_are_allowed_and_not_none(limit: int) -> Iterator[XcmVector]:
    source = VectorSource(upstream="allow_publish_from_rejects_exceeding_max_publish")
    for count in sorted({0, 1, limit, limit + 1}):
        refused = "BadFormat" if not count else "StackLimitReached" if count > limit else None
        why = f"{count} instructions where {limit} are allowed"
        yield asked(f"publish-{count}-of-{limit}", why, source, allow_publish(limit), publish(count), refused)


def test_sixteen_publishes_run_where_nothing_else_was_said() -> None:
    assert ask(AllowPublishFrom(Everything()), publish(16)) == publish(16)
    assert refusal_of(AllowPublishFrom(Everything()), publish(17)) == StackLimitReached()


@yields("xcm/barriers")
def test_a_publish_before_a_deposit_needs_another_barrier() -> Iterator[XcmVector]:
    mixed: Xcm = (*publish(), DEPOSIT)
    source = scenario("AllowPublishFrom Barrier / Barrier rejects Publish mixed with other instructions")
    yield executes(source, "mixed", allow_publish(), mixed, "BadFormat")
    paid: Xcm = (WITHDRAW, BuyExecution(FUNDS[0], WEIGHT), *mixed)
    assert ask(barrier_of(chain(allow_publish(), PAID)), paid) == paid


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_rejects_non_publish")
def test_a_message_without_a_publish_has_a_bad_format() -> Iterator[XcmVector]:
    source = scenario("AllowPublishFrom Barrier / Barrier rejects non-Publish messages")
    yield executes(source, "other", allow_publish(), (TRANSFER,), "BadFormat")


@yields("xcm/barriers")
@pytest.mark.parametrize("at", range(3))
def test_another_instruction_at_any_place_has_a_bad_format(at: int) -> Iterator[XcmVector]:
    source = VectorSource(upstream="allow_publish_from_rejects_other_before_publish")
    message: Xcm = (*publish(2)[:at], ClearOrigin(), *publish(2)[at:])
    yield asked(f"other-at-{at}", f"another instruction at place {at}", source, allow_publish(), message, "BadFormat")


@yields("xcm/barriers")
def test_a_topic_is_another_instruction() -> Iterator[XcmVector]:
    source = VectorSource(upstream="allow_publish_from_rejects_publish_with_other_instructions")
    message: Xcm = (*publish(), SET_TOPIC)
    yield asked("topic", "a topic is another instruction", source, allow_publish(), message, "BadFormat")


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_filters_specific_parachains")
def test_an_origin_outside_of_the_filter_is_unsupported() -> Iterator[XcmVector]:
    barrier = allow_publish(16, XcmFilter("Equals", [location_json(PARA_1000)]))
    assert ask(barrier_of(barrier), publish(), origin=PARA_1000) == publish()
    source = scenario("AllowPublishFrom Barrier / Barrier filters by origin")
    yield executes(source, "origin", barrier, publish(), "Unsupported")


@yields("xcm/barriers")
@pytest.mark.upstream("allow_publish_from_allows_system_parachain")
@pytest.mark.upstream("allow_publish_from_rejects_non_parachain_origin")
@pytest.mark.parametrize(
    ("name", "chosen", "contained"),
    [
        ("only-parachains", XcmFilter("OnlyParachains"), "system last-system public"),
        ("system", XcmFilter("IsChildSystemParachain"), "system last-system"),
        ("is-in", XcmFilter("IsIn", [location_json(PLACES[it]) for it in ("relay", "sibling")]), "relay sibling"),
        ("everything", EVERYTHING, "relay inside"),
        ("nothing", NOTHING, ""),
    ],
)
def test_the_filter_alone_decides_about_an_origin(name: str, chosen: XcmFilter, contained: str) -> Iterator[XcmVector]:
    # upstream's test of other origins says "rejects" and lets everything pass; the public plan asks for Unsupported
    source = VectorSource(upstream="only_parachains_filter_works")
    for place in ("relay", "inside") if name in {"everything", "nothing"} else PLACES:
        why = f"the filter {chosen.filter} is asked about {PLACES[place]}"
        refused = None if place in contained.split() else "Unsupported"
        barrier = allow_publish(16, chosen)
        yield asked(f"filter-{name}-{place}", why, source, barrier, publish(), refused, origin=PLACES[place])


@yields("xcm/barriers")
def test_the_first_barrier_that_allows_wins_and_the_next_is_not_asked() -> Iterator[XcmVector]:
    later = Recorder()
    assert ask(BarrierChain(AllowPublishFrom(Everything(), 16), later), publish()) == publish()
    assert later.asked == []
    source = scenario("AllowPublishFrom Barrier / Barrier combined with other barriers")
    yield executes(source, "chain", chain(allow_publish(), PAID), publish())


@yields("xcm/barriers")
def test_the_checks_come_in_their_order() -> Iterator[XcmVector]:
    order, closed = VectorSource(trap="the order of the barrier's checks"), allow_publish(1, NOTHING)
    yield asked("order-origin-empty", "the origin is checked before emptiness", order, closed, (), "Unsupported")
    why = "the origin is checked before the length"
    yield asked("order-origin-length", why, order, closed, publish(2), "Unsupported")
    why, mixed = "the length is checked before the form", (*publish(), DEPOSIT)
    yield asked("order-length-form", why, order, allow_publish(1), mixed, "StackLimitReached")


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


@yields("xcm/barriers")
@pytest.mark.parametrize(
    ("name", "credit"),
    [
        ("none", Weight.ZERO),
        ("exact", WEIGHT),
        ("more", Weight(15, 12)),
        ("less-time", Weight(9, 12)),
        ("less-proof", Weight(12, 9)),
    ],
)
def test_a_credit_pays_for_a_message_of_its_weight(name: str, credit: Weight) -> Iterator[XcmVector]:
    source, refused = VectorSource(upstream="TakeWeightCredit"), None if credit.all_gte(WEIGHT) else "Overweight"
    barrier = XcmBarrier("TakeWeightCredit")
    yield asked(f"credit-{name}", f"a credit of {credit}", source, barrier, (TRANSFER,), refused, credit=credit)


@yields("xcm/barriers")
def test_no_weight_needs_no_credit() -> Iterator[XcmVector]:
    source, barrier = VectorSource(upstream="TakeWeightCredit"), XcmBarrier("TakeWeightCredit")
    yield asked("credit-zero", "no weight needs no credit", source, barrier, (), weight=Weight.ZERO)


PAYS = VectorSource(upstream="AllowTopLevelPaidExecutionFrom")
THREE = WithdrawAsset(assets(Asset.fungible(Location.parachain(at), 1) for at in (1, 2, 3)))


@yields("xcm/barriers")
@pytest.mark.parametrize(
    ("name", "message", "refused"),
    [
        ("empty", (), "BadFormat"),
        ("no-withdrawal", (BUY,), "BadFormat"),
        ("only-withdrawal", (WITHDRAW,), "BadFormat"),
        ("bought", (WITHDRAW, BUY, *publish()), None),
        ("bought-limited", (WITHDRAW, BuyExecution(FUNDS[0], WEIGHT), *publish()), None),
        ("bought-more", (WITHDRAW, BuyExecution(FUNDS[0], Weight(99, 99)), *publish()), None),
        ("bought-less-time", (WITHDRAW, BuyExecution(FUNDS[0], Weight(9, 99)), *publish()), "Overweight"),
        ("bought-less-proof", (WITHDRAW, BuyExecution(FUNDS[0], Weight(99, 9)), *publish()), "Overweight"),
        ("fees", (WITHDRAW, PayFees(FUNDS[0]), *publish()), None),
        ("two-assets", (WithdrawAsset(THREE.assets[:2]), BUY), None),
        ("three-assets", (THREE, BUY), "BadFormat"),
        ("cleared", (WITHDRAW, ClearOrigin(), BUY), None),
        ("descended", (WITHDRAW, DESCEND, BUY), None),
        ("descended-nowhere", (WITHDRAW, DescendOrigin(()), BUY), "Overweight"),
        ("late", (WITHDRAW, ClearOrigin(), DESCEND, ClearOrigin(), BUY), None),
        ("too-late", (WITHDRAW, ClearOrigin(), DESCEND, ClearOrigin(), DESCEND, BUY), "BadFormat"),
        ("something-before", (WITHDRAW, *publish(), BUY), "Overweight"),
    ],
)
def test_a_message_that_pays_first_buys_its_own_weight_and_no_more(
    name: str, message: Xcm, refused: str | None
) -> Iterator[XcmVector]:
    yield asked(f"paid-{name}", f"a message that pays or not: {name}", PAYS, PAID, message, refused)
    if refused == "Overweight":
        assert refusal_of(barrier_of(PAID), message) == Overweight(WEIGHT)
    if refused is None:
        limits = [it.weight_limit for it in ask(barrier_of(PAID), message) if isinstance(it, BuyExecution)]
        assert limits == ([] if name == "fees" else [WEIGHT])


@yields("xcm/barriers")
def test_an_origin_that_may_not_pay_is_unsupported() -> Iterator[XcmVector]:
    barrier = XcmBarrier("AllowTopLevelPaidExecutionFrom", NOTHING)
    yield asked("paid-origin", "the origin comes first", PAYS, barrier, (WITHDRAW, BUY), "Unsupported")


UNPAID = VectorSource(upstream="AllowExplicitUnpaidExecutionFrom")
EXPLICIT = XcmBarrier("AllowExplicitUnpaidExecutionFrom", XcmFilter("IsChildSystemParachain"))


@yields("xcm/barriers")
@pytest.mark.parametrize(
    ("name", "message", "refused"),
    [
        ("empty", (), "BadFormat"),
        ("unlimited", (UnpaidExecution(), TRANSFER), None),
        ("exact", (UnpaidExecution(WEIGHT), TRANSFER), None),
        ("less-time", (UnpaidExecution(Weight(9, 10)), TRANSFER), "Overweight"),
        ("less-proof", (UnpaidExecution(Weight(10, 9)), TRANSFER), "Overweight"),
        ("other-first", (TRANSFER, UnpaidExecution()), "Overweight"),
        ("checks-origin", (UnpaidExecution(None, Location.parent()), TRANSFER), None),
    ],
)
def test_unpaid_execution_has_to_be_asked_for(name: str, message: Xcm, refused: str | None) -> Iterator[XcmVector]:
    why = f"a system parachain asks: {name}"
    yield asked(f"unpaid-{name}", why, UNPAID, EXPLICIT, message, refused, origin=PARA_1000)
    if refused == "Overweight":
        assert refusal_of(barrier_of(EXPLICIT), message, origin=PARA_1000) == Overweight(WEIGHT)


@yields("xcm/barriers")
def test_a_public_parachain_asks_in_vain_for_unpaid_execution() -> Iterator[XcmVector]:
    message: Xcm = (UnpaidExecution(), TRANSFER)
    yield asked("unpaid-public", "a public parachain may not", UNPAID, EXPLICIT, message, "Unsupported")


@yields("xcm/barriers")
@pytest.mark.parametrize(("place", "refused"), [("relay", "Unsupported"), ("public", None), ("inside", "Unsupported")])
def test_a_trusted_origin_may_run_anything(place: str, refused: str | None) -> Iterator[XcmVector]:
    free, why = XcmBarrier("AllowUnpaidExecutionFrom", XcmFilter("OnlyParachains")), "any message of a parachain runs"
    yield asked(f"free-{place}", why, UNPAID, free, (TRANSFER,), refused, origin=PLACES[place])


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


COMPUTED = VectorSource(upstream="WithComputedOrigin")


@yields("xcm/barriers")
@pytest.mark.parametrize("prefixes", [1, 8])
def test_a_descended_origin_is_asked_about_unless_the_descent_is_too_far(prefixes: int) -> Iterator[XcmVector]:
    inside = allow_publish(2, XcmFilter("Equals", [location_json(PLACES["inside"])]))
    within, why = XcmBarrier("WithComputedOrigin", max_prefixes=prefixes, inner=[inside]), f"up to {prefixes} prefixes"
    to_account = DescendOrigin((ACCOUNT,))
    yield asked(f"computed-descends-{prefixes}", why, COMPUTED, within, (to_account, *publish(2)))
    yield asked(f"computed-stays-{prefixes}", why, COMPUTED, within, publish(2), "Unsupported")
    twice, refused = (DescendOrigin(()), to_account, *publish()), "Unsupported" if prefixes == 1 else None
    yield asked(f"computed-descends-nowhere-{prefixes}", why, COMPUTED, within, twice, refused)
    deep, why = (DescendOrigin((PalletInstance(1),) * 8), *publish()), "the origin would have nine junctions"
    yield asked(f"computed-deep-{prefixes}", why, COMPUTED, within, deep, "Unsupported")


@yields("xcm/barriers")
@pytest.mark.parametrize(("count", "refused"), [(7, None), (8, "Unsupported")])
def test_an_origin_descends_to_eight_junctions(count: int, refused: str | None) -> Iterator[XcmVector]:
    anybody = XcmBarrier("WithComputedOrigin", max_prefixes=8, inner=[allow_publish()])
    steps: Xcm = (DescendOrigin((PalletInstance(1),) * count), *publish())
    why = f"an origin of {count + 1} junctions, where all origins are allowed"
    yield asked(f"computed-junctions-{count + 1}", why, COMPUTED, anybody, steps, refused)


@yields("xcm/barriers")
def test_a_descent_is_put_back_before_a_message_that_pays() -> Iterator[XcmVector]:
    within = XcmBarrier("WithComputedOrigin", max_prefixes=8, inner=[PAID])
    bought: Xcm = (DescendOrigin((ACCOUNT,)), WITHDRAW, BUY)
    yield asked("computed-paid", "what was taken off is put back, and the limit is set", COMPUTED, within, bought)


def test_a_descended_origin_is_no_parachain_and_publishes_nothing() -> None:
    barrier = WithComputedOrigin(AllowPublishFrom(OnlyParachains()))
    assert refusal_of(barrier, (DescendOrigin((PalletInstance(1),)), *publish())) == Unsupported()


@yields("xcm/barriers")
@pytest.mark.parametrize(
    ("name", "why", "message", "refused"),
    [
        ("last", "a last topic is no instruction to count", (*publish(2), SET_TOPIC), None),
        ("first", "a topic elsewhere is one", (SET_TOPIC, *publish()), "BadFormat"),
        ("absent", "a message without a topic", publish(2), None),
        ("alone", "a topic alone leaves an empty message", (SET_TOPIC,), "BadFormat"),
        ("refused", "one Publish too many", (*publish(3), SET_TOPIC), "StackLimitReached"),
        ("twice", "only the last topic is taken off", (*publish(), SET_TOPIC, SetTopic(bytes(32))), "BadFormat"),
    ],
)
def test_a_last_topic_is_the_messages_id_and_the_barrier_does_not_see_it(
    name: str, why: str, message: Xcm, refused: str | None
) -> Iterator[XcmVector]:
    source = VectorSource(upstream="TrailingSetTopicAsId")
    trailing = XcmBarrier("TrailingSetTopicAsId", inner=[allow_publish(2)])
    vector = asked(f"topic-{name}", why, source, trailing, message, refused)
    if refused is None:
        assert answer(vector).message_id == (hexed(TOPIC) if name == "last" else None)
    yield vector


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
    message: Xcm = (*publish(16), SET_TOPIC)
    assert ask(westend, message) == message
    refusal = refusal_of(westend, (*publish(17), SET_TOPIC))
    assert isinstance(refusal, NoBarrierAllows)
    assert refusal.name == "Unsupported"


CHAINED = VectorSource(trap="a chain of barriers")
RELAY = XcmBarrier(
    "TrailingSetTopicAsId",
    inner=[
        chain(
            XcmBarrier("TakeWeightCredit"),
            allow_publish(16, XcmFilter("OnlyParachains")),
            XcmBarrier("WithComputedOrigin", max_prefixes=8, inner=[chain(PAID, EXPLICIT)]),
        )
    ],
)


@yields("xcm/barriers")
@pytest.mark.parametrize(
    ("name", "message", "origin", "refused"),
    [
        ("publish", publish(16), PARA_2000, None),
        ("publish-17", publish(17), PARA_2000, "Unsupported"),
        ("publish-topic", (*publish(16), SET_TOPIC), PARA_1000, None),
        ("publish-account", publish(), PLACES["account"], "Unsupported"),
        ("publish-credit", publish(17), PARA_2000, None),
        ("paid", (WITHDRAW, BUY, *publish(17)), PARA_2000, None),
        ("paid-inside", (DescendOrigin((ACCOUNT,)), WITHDRAW, BUY, TRANSFER), PARA_2000, None),
        ("unpaid-system", (UnpaidExecution(), TRANSFER), PARA_1000, None),
        ("unpaid-public", (UnpaidExecution(), TRANSFER), PARA_2000, "Unsupported"),
        ("unpaid-topic", (UnpaidExecution(), TRANSFER, SET_TOPIC), PARA_1000, None),
        ("empty", (), PARA_2000, "Unsupported"),
        ("transfer", (TRANSFER,), PARA_2000, "Unsupported"),
    ],
)
def test_the_barriers_of_polkadot_let_pass_what_one_of_them_allows(
    name: str, message: Xcm, origin: Location, refused: str | None
) -> Iterator[XcmVector]:
    why = f"Polkadot's barriers around AllowPublishFrom: {name}"
    credit = Weight(10, 11) if name == "publish-credit" else Weight.ZERO
    yield asked(f"relay-{name}", why, CHAINED, RELAY, message, refused, origin=origin, credit=credit)


@yields("xcm/barriers")
def test_a_chain_allows_what_any_of_its_barriers_allows_and_refuses_as_unsupported() -> Iterator[XcmVector]:
    yield asked("chain-empty", "a chain without barriers allows nothing", CHAINED, chain(), publish(), "Unsupported")
    why, refusing = "a chain answers Unsupported, whatever its barriers answer", allow_publish(0)
    barriers = chain(refusing, allow_publish(16, NOTHING))
    yield asked("chain-refuses", why, CHAINED, barriers, publish(), "Unsupported")
    why = "the second barrier allows what the first refuses"
    yield asked("chain-second", why, CHAINED, chain(refusing, allow_publish(1)), publish())


def test_a_chain_that_refuses_keeps_what_each_barrier_said() -> None:
    barriers = BarrierChain(TakeWeightCredit(), AllowPublishFrom(Everything(), 4), AllowUnpaidExecutionFrom(Nothing()))
    refusal = refusal_of(barriers, publish(5))
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
