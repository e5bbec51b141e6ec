"""The meter of callbacks: a pass stops at the limit of a block, and continues there in the next one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from pallets.block_vectors import (
    ALPHA,
    BETA,
    PUBLIC,
    SMALL,
    A,
    About,
    B,
    BlockVector,
    C,
    D,
    SmallNetwork,
    aside,
    costs,
    deleted,
    event_names,
    of_bytes,
    path_key,
    staircase,
    told,
)
from pallets.subscriber_invariants import (
    ChangesTold,
    all_hold,
    nothing_is_lost,
)
from pallets.subscriber_world import MOCK, K, World
from pallets.weighing_world import WeighingRecorder, WeighingWorld, micros
from relaycast_pallets import (
    CallbackOverweight,
    CombinedHandlers,
    IncompleteBelowLimit,
    Panic,
    Policies,
    ReadSource,
    StopCause,
    SubscribedKey,
    SubscriberConfig,
    Update,
    WeighsCallbacks,
    ensure_callbacks_fit,
)
from relaycast_pallets.parachain_system import pallet as parachain_module
from relaycast_pallets.subscriber.events import EntryUndecodable
from relaycast_pallets.subscriber.proof_pass import CallbackMeter, PublisherPass
from relaycast_pallets.subscriber.result import Stop
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_pallets.subscriber.walk import PublisherWalk
from relaycast_trie.node import HashedValue, Value
from relaycast_xcm.primitives import U64_MAX, ParaId, Weight
from vector_fields import VectorSource, VectorWeight, unhexed
from yielded_vectors import yields

PATCH = pytest.MonkeyPatch


def about(name: str, why: str, invariant: int = 2) -> About:
    return About(f"callback-weights/{name}", why, VectorSource(invariant=invariant))


def weighing(weights: Mapping[SubscribedKey, int], *, publishers: Sequence[ParaId] = (ALPHA,)) -> SmallNetwork:
    """Return a network whose callbacks declare these microseconds; its keys have values, inside their nodes or not."""
    limit = VectorWeight.of(micros(100, U64_MAX))
    network = SmallNetwork(config=msgspec.structs.replace(SMALL, callback_limit=limit))
    for publisher in publishers:
        network.subscribe(publisher, weights)
        for number, (each, count) in enumerate(weights.items()):
            network.publish(publisher, [each], each if number % 2 else b"inside")
            network.callback_weights[publisher, each] = micros(count, 10)
    network.seal()
    return network


def events(block: BlockVector) -> list[str]:
    return [event_names()[unhexed(event)[0]] for event in block.expect.events or ()]


@yields("subscriber/callback-weights")
def test_a_callback_that_does_not_fit_waits_with_the_cursor() -> Iterator[BlockVector]:
    network = weighing({A: 40, B: 40, C: 40, D: 0})
    for number, expected in enumerate(([A, B], [C, D])):
        part = about(f"rounds/{number}", "three callbacks of 40 us, a limit of 100: the third waits with the cursor")
        block = network.block(part, seal=False)
        assert told(block) == expected
        yield block


@yields("subscriber/callback-weights")
def test_the_limit_may_be_reached_exactly_and_no_value_is_read_for_a_callback_beyond_it() -> Iterator[BlockVector]:
    for each in (60, 61):
        network = weighing({A: 40, B: each})
        part = about(f"boundary/{each}", f"callbacks of 40 and {each} us: the limit of 100 may be reached exactly")
        block = network.block(part, seal=False)
        assert (B in told(block)) == any(bytes(B) in node for node in block.nodes_at(block.given)) == (each == 60)
        yield block


@yields("subscriber/callback-weights")
def test_bytes_that_callbacks_read_end_a_pass_as_their_time_does() -> Iterator[BlockVector]:
    network = weighing({A: 1, B: 1})
    for limit in (19, 20):
        part = aside(network)
        part.config = msgspec.structs.replace(network.config, callback_limit=VectorWeight(micros(10).ref_time, limit))
        part.callback_weights = network.callback_weights
        name = about(f"proof-size/{limit}", f"two callbacks of 10 bytes of proof each, a limit of {limit}")
        yield part.block(name, seal=False)


@yields("subscriber/callback-weights")
def test_a_publisher_whose_callback_waits_comes_first_in_the_next_block() -> Iterator[BlockVector]:
    network = weighing({A: 60}, publishers=(ALPHA, BETA))
    yield network.block(about("publishers/first", "the second publisher's callback does not fit"), seal=False)
    network.publish(ALPHA, [A], b"new")
    yield network.block(about("publishers/second", "it comes first in the next block, and then the other does not fit"))


@yields("subscriber/callback-weights")
def test_a_callback_above_the_limit_keeps_no_other_from_its_turn_and_is_made_once_it_fits() -> Iterator[BlockVector]:
    network = weighing({A: 10, B: 101, C: 10})
    for number, expected in enumerate(([A], [], [C, A])):
        part = about(f"beyond/{number}", "a callback above the limit is passed over, once it is at the cursor", 8)
        block = network.block(part, seal=False)
        assert told(block) == expected
        yield block
        network.publish(ALPHA, [A], bytes([number]))
        network.seal()
    network.callback_weights[ALPHA, B] = micros(1)
    yield network.block(about("beyond/fits", "it is told once it weighs less", 3), seal=False)


@yields("subscriber/callback-weights")
def test_a_key_beyond_one_of_both_meters_is_reported_with_that_meter() -> Iterator[BlockVector]:
    network = weighing({A: 10, B: 10})
    limit = VectorWeight.of(micros(100, 70_000))
    network.config = msgspec.structs.replace(network.config, callback_limit=limit)
    network.callback_weights[ALPHA, A] = micros(20, 70_001)
    for number in range(2):
        part = about(f"beyond/proof-size-{number}", "a callback above the limit in its proof size alone", 8)
        block = network.block(part, seal=False)
        assert events(block) == ["CallbackBeyondLimit"] * number
        yield block
    network = weighing({A: 10, B: 10})
    network.publish(ALPHA, [A], bytes(600))
    network.seal()
    for number in range(2):
        part = about(f"beyond/budget-{number}", "a key that weighs something and does not fit the budget", 8)
        block = network.block(part, budget=of_bytes(500), seal=False)
        assert events(block) == ["KeyBeyondBudget"] * number
        yield block


@yields("subscriber/callback-weights")
def test_the_meter_that_has_no_more_room_first_ends_the_pass() -> Iterator[BlockVector]:
    network = weighing({A: 60, B: 60})
    whole = costs(network.honest(about("", ""), seal=False))
    for short in (0, 1):
        part = about(f"budget/{short}", f"the budget is {short} bytes short of all reads: which meter ends the pass")
        yield network.honest(part, budget=of_bytes(whole[-1] - short), seal=False)


@yields("subscriber/callback-weights")
def test_a_collator_cannot_give_other_nodes_where_callbacks_end_the_pass() -> Iterator[BlockVector]:
    network = weighing({A: 60, B: 60})
    source = VectorSource(attack="stop_early")
    honest = network.honest(about("", ""), seal=False)
    nodes = honest.nodes_at(honest.given)
    for index in (0, len(nodes) - 1):
        part = About(f"callback-weights/lies/{index}", "a node less, before the callback meter ends the pass", source)
        yield network.lie(honest, part, nodes[:index] + nodes[index + 1 :])
    assert honest.collected
    rest = [node for node in honest.nodes_at(honest.collected) if node not in nodes]
    more = About("callback-weights/lies/more", "the value of the key that waits is given too", source)
    yield network.lie(honest, more, [*nodes, *rest])


@yields("subscriber/callback-weights")
def test_callbacks_of_a_disabled_publisher_leave_their_room_to_others() -> Iterator[BlockVector]:
    network, deep = weighing({path_key("0"): 60, path_key("f"): 10}), staircase(9, subscribed=path_key("f"))
    network.publish(ALPHA, deep, bytes(30))
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta")
    network.callback_weights[BETA, A] = micros(100)
    yield network.block(about("disabled", "what a publisher that is disabled had counted is given back", 8))


@yields("subscriber/callback-weights")
def test_a_callback_that_returns_more_than_it_declared_in_one_dimension_is_an_event() -> Iterator[BlockVector]:
    network = weighing({A: 10, B: 10})
    network.used_weights = {(ALPHA, A): micros(10, 11), (ALPHA, B): micros(9, 10)}
    yield network.block(about("overweight", "a callback that returns more than it declared is an event"), seal=False)
    network = weighing({A: 10, B: 10, C: 0, D: 10})
    network.write(ALPHA, D, b"\xff")
    network.callback_weights[ALPHA, C] = Weight.ZERO
    network.used_weights = {
        (ALPHA, A): Weight(micros(10).ref_time + 1, 9),
        (ALPHA, B): micros(1, 1 << 20),
        (ALPHA, C): Weight(1 << 40, 0),
        (ALPHA, D): Weight(1 << 40, 1 << 40),
    }
    part = about("overweight/one-dimension", "more than declared in one dimension is enough; no callback, no event")
    yield network.block(part)
    network.policies = {"deletion": "told"}
    network.delete(ALPHA, [A, B])
    yield network.block(about("overweight/deletions", "the callback of a told deletion returns more than it declared"))


@yields("subscriber/callback-weights")
@pytest.mark.parametrize(("name", "gone"), [("keys", [A, B]), ("trie", [A, B, C])])
def test_deletions_wait_where_the_callbacks_of_a_block_weigh_enough(
    name: str, gone: list[SubscribedKey]
) -> Iterator[BlockVector]:
    network = weighing({A: 60, B: 60, C: 10})
    network.policies = {"deletion": "told"}
    for _ in range(2):
        network.block(about("", ""), seal=False)
    network.delete(ALPHA, gone)
    network.seal()
    for number, expected in enumerate((gone[:1], gone[1:], [])):
        part = about(f"deletions/{name}-{number}", "a told deletion weighs what a value does", 3)
        block = network.block(part, seal=False)
        assert deleted(block) == expected
        yield block


# Worlds


def heavy(each: Weight, limit: Weight, *, policies: Policies | None = None) -> WeighingWorld:
    """Return a world in which ten values that stand outside of their nodes wait for callbacks."""
    world = WeighingWorld(each=each, limit=limit, policies=policies)
    world.subscribe(ALPHA, K)
    for number, written in enumerate(K):
        world.publish(ALPHA, [written], bytes([number]) * 40)
    return world


def test_a_pass_that_charges_its_own_trie_stops_at_a_callback_that_does_not_fit_and_goes_on_there() -> None:
    world, heard = heavy(micros(2), micros(7), policies=Policies(metering=MeterOwnState())), []
    for expected in (K[:3], K[3:6], K[6:9], K[9:]):
        block = world.block()
        all_hold(world, block, ChangesTold())
        assert [key for _, key in block.called] == expected
        world.state.commit()
        heard += block.called
        if len(heard) < len(K):
            assert block.result.stopped_by is block.pruning.stopped_by is StopCause.CALLBACKS
            assert block.result.cursor == (ALPHA, K[len(heard)])
            assert block.outcome.meter.can_consume(block.result.least)
    assert block.result.is_complete
    assert block.result.stopped_by is None
    nothing_is_lost(world)


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


def test_a_callback_that_weighs_more_than_it_declared_is_told_and_charged() -> None:
    world = heavy(micros(1), micros(10))
    world.weigher.used = micros(3, 7)
    block = world.block()
    assert block.result.callback_weight == micros(10)
    assert world.subscriber.delivered.weight == micros(30, 70)
    overweight = [CallbackOverweight(ALPHA, key, micros(1), micros(3, 7)) for key in K]
    assert world.system.events.of(CallbackOverweight) == overweight


@dataclass
class AtOnce(WeighingRecorder):
    batches: list[int] = field(default_factory=list)

    def on_data_updated_many(self, publisher: ParaId, updates: Sequence[Update]) -> list[Weight]:
        self.batches.append(len(updates))
        return [self.on_data_updated(publisher, *update) for update in updates]


def test_a_handler_that_takes_many_updates_is_called_once_and_leaves_what_single_calls_leave() -> None:
    seen, at_once = [], AtOnce({ALPHA: K}, each=micros(1))
    for weigher in (WeighingRecorder({ALPHA: K}, each=micros(1)), at_once):
        world = heavy(micros(1), micros(10))
        weigher.used = micros(3, 7)
        world.subscriber.handler = world.handler = weigher
        world.relay.child(world.relay.children()[0]).put(K[4], b"\xff")
        block = world.block()
        seen.append((block.called, list(world.system.events), world.subscriber.delivered, world.everything()))
        assert EntryUndecodable(ALPHA, K[4]) in seen[-1][1]
    assert seen[0] == seen[1]
    assert at_once.batches == [len(K) - 1]


@pytest.mark.parametrize("used", [Weight.ZERO, micros(1), Weight(1)])
def test_a_callback_within_what_it_declared_is_not_told(used: Weight) -> None:
    world = heavy(micros(1), micros(10))
    world.weigher.used = used
    world.block()
    assert not world.system.events.of(CallbackOverweight)
    assert world.subscriber.delivered.weight == used * len(K)


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
    changed_entry = PublisherPass.changed_entry

    def read_first(self: PublisherPass, key: Any, value: Value) -> bytes:
        if isinstance(value, HashedValue):
            value = self._reads.relay(self._view.para_id, value.hash, ReadSource.RELAY_VALUE)
        return changed_entry(self, key, value)

    patch.setattr(PublisherPass, "changed_entry", read_first)


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


@pytest.mark.parametrize(
    ("mutate", "notices"),
    [
        (ask_after_reading, test_the_limit_may_be_reached_exactly_and_no_value_is_read_for_a_callback_beyond_it),
        (
            demand_an_exhausted_budget_all_the_same,
            test_a_pass_that_charges_its_own_trie_stops_at_a_callback_that_does_not_fit_and_goes_on_there,
        ),
        (keep_what_the_disabled_took, test_callbacks_of_a_disabled_publisher_leave_their_room_to_others),
        (count_nothing, test_a_callback_that_does_not_fit_waits_with_the_cursor),
        (skip_what_does_not_fit, test_a_callback_that_does_not_fit_waits_with_the_cursor),
    ],
    ids=lambda it: it.__name__,
)
def test_a_mutant_is_caught(mutate: Callable[[PATCH], None], notices: Callable[[], None], monkeypatch: PATCH) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        notices()
