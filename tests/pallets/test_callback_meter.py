"""The meter of callbacks: a pass stops at the limit of a block, and continues there in the next one."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pallets.subscriber_invariants import (
    ChangesTold,
    all_hold,
    callbacks_within_the_limit,
    nothing_is_lost,
    one_pass_in_both_modes,
)
from pallets.subscriber_world import ALPHA, BETA, MOCK, PLENTY, PUBLIC, World, keys, path_key, staircase
from pallets.weighing_world import WeighingRecorder, WeighingWorld, micros
from relaycast_pallets import (
    CallbackBeyondLimit,
    CallbackOverweight,
    CombinedHandlers,
    IncompleteBelowLimit,
    KeyBeyondBudget,
    Panic,
    Policies,
    ReadSource,
    StopCause,
    SubscriberConfig,
    WeighsCallbacks,
    ensure_callbacks_fit,
)
from relaycast_pallets.parachain_system import pallet as parachain_module
from relaycast_pallets.subscriber.callbacks import CallbackMeter
from relaycast_pallets.subscriber.policies import EverythingCarried
from relaycast_pallets.subscriber.publisher_pass import PublisherReads
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk
from relaycast_pallets.subscriber.stop import Stop
from relaycast_trie.node import HashedValue, Value
from relaycast_xcm.primitives import U64_MAX, Weight

K = keys(10)
CARRIED = Policies(metering=EverythingCarried())
PATCH = pytest.MonkeyPatch


def heavy(each: Weight, limit: Weight, *, policies: Policies | None = None) -> WeighingWorld:
    """Return a world in which ten values that stand outside of their nodes wait for callbacks."""
    world = WeighingWorld(each=each, limit=limit, policies=policies)
    world.subscribe(ALPHA, K)
    for number, written in enumerate(K):
        world.publish(ALPHA, [written], bytes([number]) * 40)
    return world


def deep_beside_light() -> WeighingWorld:
    """Return a world in which a publisher is disabled after two of its keys were read, and another waits behind it."""
    deep, early = staircase(12, subscribed=path_key("f")), [path_key("0001"), path_key("0002")]
    world = WeighingWorld(each=micros(3), limit=micros(6))
    world.weigher.declared[BETA, K[0]] = micros(6)
    world.subscribe(ALPHA, [*early, deep[0]])
    world.publish(ALPHA, [*early, *deep], bytes(40))
    world.subscribe(BETA, K[:1])
    world.publish(BETA, K[:1], bytes(40))
    return world


@pytest.mark.parametrize("policies", [Policies(), CARRIED], ids=["every read", "carried"])
def test_a_pass_stops_at_the_first_key_whose_callback_does_not_fit_and_goes_on_there(policies: Policies) -> None:
    world, told = heavy(micros(2), micros(7), policies=policies), []
    for expected in (K[:3], K[3:6], K[6:9], K[9:]):
        block = world.block()
        all_hold(world, block, ChangesTold())
        assert [key for _, key in block.called] == expected
        world.state.commit()
        told += block.called
        if len(told) < len(K):
            assert block.result.stopped_by is block.pruning.stopped_by is StopCause.CALLBACKS
            assert block.result.cursor == (ALPHA, K[len(told)])
            assert block.outcome.meter.can_consume(block.result.least)
    assert block.result.is_complete
    assert block.result.stopped_by is None
    nothing_is_lost(world)


def test_a_value_is_not_read_for_a_callback_that_does_not_fit() -> None:
    """Its path is in the proof, because only the path shows the change; its value would be wasted bytes."""
    block = heavy(micros(2), micros(4)).block()
    values = [read for read in block.result.reads if read.source is ReadSource.RELAY_VALUE]
    assert (len(values), len(block.called)) == (2, 2)


def test_a_limit_that_is_reached_exactly_is_not_exceeded() -> None:
    block = heavy(micros(2), micros(20)).block()
    assert block.result.is_complete
    assert block.result.callback_weight == block.result.callback_limit == micros(20)


@pytest.mark.parametrize(
    ("each", "limit"),
    [
        (Weight(1, 100), Weight(U64_MAX, 250)),  # bytes that the callbacks read
        (Weight(100, 1), Weight(250, U64_MAX)),  # time that they take
    ],
)
def test_either_dimension_of_a_weight_stops_a_pass(each: Weight, limit: Weight) -> None:
    assert len(heavy(each, limit).block().called) == 2


@pytest.mark.parametrize("limit", [Weight.ZERO, micros(1), Weight.MAX])
def test_a_handler_that_declares_nothing_is_called_for_everything(limit: Weight) -> None:
    """The returned weight counts against no limit: the draft's behaviour."""
    world = World(config=replace(MOCK, callback_limit=limit))
    world.handler.weight = micros(5)
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K)
    block = world.block()
    assert block.result.is_complete
    assert len(block.called) == len(K)
    assert block.result.callback_weight == Weight.ZERO
    assert world.subscriber.delivered.weight == micros(50)
    assert not world.system.events.of(CallbackOverweight)


def test_callbacks_of_no_weight_fit_any_limit() -> None:
    assert heavy(Weight.ZERO, Weight.ZERO).block().result.is_complete


def test_what_had_no_more_is_known() -> None:
    """A collator runs out of budget, a chain that gets fewer nodes misses one, and both know their callback meter."""
    by_budget, by_callbacks = heavy(micros(1), micros(10)).block(1_500), heavy(micros(1), micros(9)).block()
    assert (by_budget.pruning.stopped_by, by_budget.result.stopped_by) == (StopCause.BUDGET, StopCause.PROOF)
    assert (by_callbacks.pruning.stopped_by, by_callbacks.result.stopped_by) == (StopCause.CALLBACKS,) * 2


def test_a_key_whose_callback_never_fits_is_passed_over_and_keeps_no_other_from_its_turn() -> None:
    """As after an upgrade that lowered the limit: no panic, the others are told, and the key is owed."""
    world = heavy(micros(1), micros(5))
    world.weigher.declared[ALPHA, K[4]] = micros(6)
    told: list[Any] = []
    for _ in range(8):
        block = world.block()
        callbacks_within_the_limit(world, block)
        one_pass_in_both_modes(block)
        told += [key for _, key in block.called]
    assert sorted(told) == sorted({*K} - {K[4]})
    assert CallbackBeyondLimit(ALPHA, K[4], micros(6), micros(5)) in world.system.events.of(CallbackBeyondLimit)
    assert not world.system.events.of(KeyBeyondBudget)
    world.allow(micros(6))
    told = [key for _ in range(2) for _, key in world.block().called]
    assert told == [K[4]]
    nothing_is_lost(world)


def test_a_key_that_bytes_do_not_suffice_for_is_still_told_as_beyond_the_budget() -> None:
    world = heavy(micros(1), micros(5))
    world.seal()
    world.storage.put_turn((ALPHA, K[0]), None)
    world.block(400, seal=False)
    assert len(world.system.events.of(KeyBeyondBudget)) == 1
    assert not world.system.events.of(CallbackBeyondLimit)


def test_callbacks_of_a_disabled_publisher_leave_their_room_to_others() -> None:
    world = deep_beside_light()
    block = world.block()
    all_hold(world, block, ChangesTold())
    assert block.called == [(BETA, K[0])]
    assert block.result.is_complete


def test_a_callback_that_weighs_more_than_it_declared_is_told_and_charged() -> None:
    world = heavy(micros(1), micros(10))
    world.weigher.used = micros(3, 7)
    block = world.block()
    assert block.result.callback_weight == micros(10)
    assert world.subscriber.delivered.weight == micros(30, 70)
    told = world.system.events.of(CallbackOverweight)
    assert told == [CallbackOverweight(ALPHA, key, micros(1), micros(3, 7)) for key in K]


@pytest.mark.parametrize("used", [Weight.ZERO, micros(1), Weight(1)])
def test_a_callback_within_what_it_declared_is_not_told(used: Weight) -> None:
    world = heavy(micros(1), micros(10))
    world.weigher.used = used
    world.block()
    assert not world.system.events.of(CallbackOverweight)
    assert world.subscriber.delivered.weight == used * len(K)


def test_a_refused_block_has_called_nobody_and_leaves_everything_as_it_was() -> None:
    """The collator prunes as if fewer callbacks fitted: it left out what would have fitted."""
    world = heavy(micros(2), micros(8))
    world.seal()
    world.allow(micros(4))
    less, _ = world.prune()
    world.allow(micros(8))
    before = world.everything()
    with pytest.raises(Panic) as panic:
        world.parachain.set_validation_data(less, b"")
    assert isinstance(panic.value.cause, IncompleteBelowLimit)
    assert world.everything() == before


def test_combined_handlers_declare_what_each_of_them_does() -> None:
    light = World().handler
    light.wanted = {ALPHA: K[:2]}
    first, second = WeighingRecorder({ALPHA: K[:1]}, each=micros(3)), WeighingRecorder({ALPHA: K[:2]}, each=micros(4))
    both = CombinedHandlers([light, first, second])
    assert [both.callback_weight(ALPHA, key) for key in K[:3]] == [micros(7), micros(4), Weight.ZERO]
    assert both.callback_weight(PUBLIC, K[0]) == Weight.ZERO
    meter = CallbackMeter(both, micros(7))
    meter.consume(meter.admit(ALPHA, K[0]))
    with pytest.raises(Stop) as stopped:
        meter.admit(ALPHA, K[1])
    assert stopped.value.cause is StopCause.CALLBACKS
    assert meter.consumed == micros(7)


def test_combined_handlers_of_which_none_declares_declare_nothing() -> None:
    world = World(config=replace(MOCK, callback_limit=Weight.ZERO))
    world.handler.weight = micros(1)
    world.subscriber.handler = CombinedHandlers([CombinedHandlers([world.handler])])
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K)
    assert len(world.block().called) == len(K)
    assert not world.system.events.of(CallbackOverweight)


def test_declarations_beyond_the_limit_are_refused_at_set_up() -> None:
    handler = WeighingRecorder({PUBLIC: K[:1], ALPHA: K[:2]}, each=micros(2))
    config = SubscriberConfig(callback_limit=micros(2))
    ensure_callbacks_fit(config, handler)
    handler.declared[ALPHA, K[1]] = micros(3)
    said = f"key 0x{K[1].hex()} must weigh at most {micros(2)}, the callback_limit of a block, got {micros(3)}"
    with pytest.raises(ValueError, match=re.escape(said)):
        ensure_callbacks_fit(config, handler)


def test_a_handler_that_declares_nothing_fits_any_limit() -> None:
    handler = World().handler
    handler.wanted = {ALPHA: K}
    assert not isinstance(handler, WeighsCallbacks)
    ensure_callbacks_fit(SubscriberConfig(callback_limit=Weight.ZERO), handler)


def test_the_default_limit_is_a_quarter_of_the_time_of_a_block() -> None:
    assert SubscriberConfig().callback_limit == Weight(2_000_000_000_000 // 4, U64_MAX)


# Mutants. Each says what it gets wrong.


def ask_after_reading(patch: PATCH) -> None:
    """The value is read before the meter of callbacks is asked: bytes of the proof for a callback that waits."""
    changed_entry = PublisherReads.changed_entry

    def read_first(self: PublisherReads, key: Any, value: Value) -> bytes:
        if isinstance(value, HashedValue):
            value = self._run.read_relay(self._view.para_id, value.hash, ReadSource.RELAY_VALUE)
        return changed_entry(self, key, value)

    patch.setattr(PublisherReads, "changed_entry", read_first)


def demand_an_exhausted_budget_all_the_same(patch: PATCH) -> None:
    """The chain treats a pass ended by callbacks as one that its collator cut short."""

    def demand(result: Any, meter: Any) -> None:
        if result.stopped_at is not None and meter.can_consume(result.least):
            publisher, key = result.stopped_at
            raise IncompleteBelowLimit(publisher, key, meter.remaining())

    patch.setattr(parachain_module, "ensure_exhausted", demand)


def keep_what_the_disabled_took(patch: PATCH) -> None:
    """Callbacks that are dropped with their publisher still count."""
    patch.setattr(CallbackMeter, "give_back", lambda _self, _weight: None)


def count_nothing(patch: PATCH) -> None:
    """Each callback is compared with the limit on its own."""
    patch.setattr(CallbackMeter, "consume", lambda _self, _weight: None)


def skip_what_does_not_fit(patch: PATCH) -> None:
    """The pass goes on behind a key whose callback does not fit, as if it had not changed."""
    compare = PublisherWalk._compare

    def skip(self: Any, index: int, new: Any, old: Any) -> None:
        try:
            compare(self, index, new, old)
        except Stop as stop:
            if stop.cause is not StopCause.CALLBACKS:
                raise

    patch.setattr(PublisherWalk, "_compare", skip)


def test_the_code_as_it_is_passes_what_the_mutants_fail() -> None:
    several_blocks(heavy(micros(2), micros(7)))
    several_blocks(deep_beside_light())


def several_blocks(world: WeighingWorld) -> None:
    told = ChangesTold()
    for number in range(6):
        told.note(world)
        block = world.block(PLENTY, seed=b"%d" % number)
        all_hold(world, block, told)
    assert block.result.is_complete
    nothing_is_lost(world)


@pytest.mark.parametrize(
    ("mutate", "world"),
    [
        (demand_an_exhausted_budget_all_the_same, lambda: heavy(micros(2), micros(7))),
        (keep_what_the_disabled_took, deep_beside_light),
        (count_nothing, lambda: heavy(micros(2), micros(7))),
        (skip_what_does_not_fit, lambda: heavy(micros(2), micros(7))),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_a_mutant_is_caught(mutate: Any, world: Any, monkeypatch: PATCH) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        several_blocks(world())


def test_a_value_read_too_early_is_caught(monkeypatch: PATCH) -> None:
    ask_after_reading(monkeypatch)
    with pytest.raises(AssertionError):
        test_a_value_is_not_read_for_a_callback_that_does_not_fit()
