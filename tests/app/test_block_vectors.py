"""The subscriber's vectors: what they cover, that both modes agree, and that an altered one is noticed."""

from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pallets.test_interrupted_passes import CASES as INTERRUPTED_MUTANTS
from pallets.test_subscriber_traps import MUTANTS as TRAP_MUTANTS
from pallets.test_subscriber_traps import demand_after_the_callbacks, never_roll_back, shuffle_apart
from relaycast.vectors import vector
from relaycast.vectors.subscriber import block_run
from relaycast.vectors.subscriber.block_run import prune, recomputed
from relaycast.vectors.subscriber.block_vector import BlockExpectation, BlockVector, key_of
from relaycast.vectors.subscriber.subscriber_kind import FILES, SUBSCRIBER
from relaycast.vectors.vector import VectorWeight, hexed, unhexed
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import StorageDoubleMap, StorageMap, StorageValue
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.turns import Turn, Turns
from relaycast_trie.hasher import blake2_256

SCENARIOS = Path(__file__).parent.parent / "vectors" / "spec_scenarios.txt"
REQUIREMENTS = {
    "Subscription Handler",
    "Change Detection",
    "Trie Depth Limit",
    "Trie Node Caching",
    "PoV Budget Constraint",
    "Publisher Prioritization",
    "Relay Proof Collection",
    "Proof Processing",
}
"""Requirements on subscribers and their collators."""

CAUSES = {
    "DuplicateNode",
    "RootMismatch",
    "MissingNode",
    "InvalidNode",
    "InvalidChildRoot",
    "UnusedNodes",
    "IncompleteBelowLimit",
}


@pytest.fixture(scope="module")
def vectors() -> list[BlockVector]:
    made = [it for _, it in SUBSCRIBER.made(7)]
    assert all(isinstance(it, BlockVector) for it in made)
    return made  # type: ignore[return-value]


def named(vectors: list[BlockVector], name: str) -> BlockVector:
    return next(it for it in vectors if it.id == f"subscriber/{name}")


def test_every_scenario_about_subscribers_has_a_vector(vectors: list[BlockVector]) -> None:
    titles = {it for it in SCENARIOS.read_text().splitlines() if it.partition(" / ")[0] in REQUIREMENTS}
    assert len(titles) == 37
    covered = {f"{it.source.requirement} / {it.source.scenario}" for it in vectors if it.source.scenario}
    assert covered == titles


def test_vectors_come_from_every_kind_of_source(vectors: list[BlockVector]) -> None:
    kinds = Counter(next(iter(msgspec.to_builtins(it.source))) for it in vectors)
    assert {kind: count >= 5 for kind, count in kinds.items()} == dict.fromkeys(
        ["requirement", "invariant", "attack", "trap", "upstream"], True
    )
    invariants = {it.source.invariant for it in vectors} - {None}
    assert invariants == {1, 2, 3, 4, 6, 8}  # 5 and 7 are shown by the lies: what is refused, and that nothing is kept
    assert len(vectors) >= 1_000


def test_ids_are_unique_and_reasons_are_one_line(vectors: list[BlockVector]) -> None:
    assert len({it.id for it in vectors}) == len(vectors)
    assert all(it.id.startswith("subscriber/") and it.why and "\n" not in it.why for it in vectors)


def test_every_cause_of_a_panic_and_every_event_of_a_pass_is_there(vectors: list[BlockVector]) -> None:
    assert {it.expect.panic.cause for it in vectors if it.expect.panic} == CAUSES
    told = {unhexed(event)[0] for it in vectors for event in it.expect.events or ()}
    names = block_run.event_names()
    assert {names[index] for index in told} == set(names.values()) - {"KeysSubscribed", "KeysUnsubscribed"}


def test_every_storage_item_is_there_before_a_block_and_behind_one(vectors: list[BlockVector]) -> None:
    before, after = ({key[:66] for it in vectors for key, _ in side(it)} for side in (lambda it: it.before, after_of))
    assert before == after
    assert len(after) == 11


def test_new_events_come_behind_those_that_are_there() -> None:
    """The README gives the index of each, and readers hard-code it."""
    assert block_run.event_names() == dict(
        enumerate(
            [
                "DataProcessed",
                "EntryUndecodable",
                "KeyBeyondBudget",
                "PublisherRootCleared",
                "PublisherDisabled",
                "PublisherEnabled",
                "PublisherCacheCleared",
                "KeysSubscribed",
                "KeysUnsubscribed",
                "DataDeleted",
                "CallbackBeyondLimit",
                "CallbackOverweight",
            ]
        )
    )


def test_the_page_gives_every_storage_item_and_every_event_that_vectors_hold(vectors: list[BlockVector]) -> None:
    readme = resources.files("relaycast.vectors").joinpath("README.md").read_text()
    storage = SubscriberStorage(State())
    items = [it for it in vars(storage).values() if isinstance(it, StorageValue | StorageMap | StorageDoubleMap)]
    assert len(items) == 12
    for it in items:
        assert f"| `{it.name[1]}` | `{it.prefix[16:].hex()}` |" in readme
    told = {unhexed(event)[0] for it in vectors for event in it.expect.events or ()}
    for index, name in block_run.event_names().items():
        assert (f"| {index} | `{name}`" in readme) is (index in told)


def after_of(it: BlockVector) -> tuple[tuple[str, str], ...]:
    return it.expect.after or ()


def test_an_honest_block_never_panics_and_is_given_what_prune_keeps(vectors: list[BlockVector]) -> None:
    """Both modes over the vector alone: the same nodes, weight, cursor and owed key (invariant 1)."""
    honest = [it for it in vectors if it.collected is not None]
    assert len(honest) > 800
    for it in honest:
        kept, pruning = prune(it)
        assert it.given == it.pruned == kept
        assert not it.expect.panic
        assert it.expect.consumed == VectorWeight.of(pruning.consumed)
        turn = [key_of(at) for at in (pruning.turn.stopped_at, pruning.turn.cursor, pruning.turn.owed)]
        assert [it.expect.stopped_at, it.expect.cursor, it.expect.owed] == turn


def test_what_is_consumed_stays_within_the_budget(vectors: list[BlockVector]) -> None:
    for it in vectors:
        if it.expect.consumed:
            assert it.expect.consumed.weight().all_lte(it.budget.weight()), it.id


def test_lies_are_refused_unless_they_are_none_or_hide_in_the_last_read(vectors: list[BlockVector]) -> None:
    lies = [it for it in vectors if it.source.attack]
    accepted = [it for it in lies if not it.expect.panic]
    assert len(lies) > 150
    assert 5 < len(accepted) < 20
    for it in accepted:
        assert it.source.attack == "reorder" or not it.expect.complete, it.id


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_one_other_bytes(vectors: list[BlockVector]) -> None:
    drawn = [msgspec.json.encode(it) for name in ("histories", "lies") for it in FILES[name](7)]
    assert drawn == [msgspec.json.encode(it) for it in vectors if it.id.split("/")[1] in {"histories", "lies"}]
    for name in ("histories", "lies"):
        assert [msgspec.json.encode(it) for it in FILES[name](8)] != [msgspec.json.encode(it) for it in FILES[name](7)]


@pytest.mark.slow
def test_what_is_not_drawn_is_the_same_for_every_seed(vectors: list[BlockVector]) -> None:
    fixed = [it for name, made in FILES.items() if name not in {"histories", "lies"} for it in made(8)]
    assert fixed == [it for it in vectors if it.id.split("/")[1] not in {"histories", "lies"}]


@pytest.mark.slow
def test_vectors_are_computed_anew_from_their_bytes_alone(vectors: list[BlockVector]) -> None:
    for it in vectors:
        read = msgspec.json.decode(msgspec.json.encode(it), type=BlockVector)
        assert SUBSCRIBER.difference(read) == "", it.id


Alteration = Callable[[BlockExpectation], BlockExpectation]


def flipped(text: str) -> str:
    data = bytearray(unhexed(text))
    data[-1] ^= 1
    return hexed(bytes(data))


def test_callbacks_stay_within_their_limit(vectors: list[BlockVector]) -> None:
    weighed = [it for it in vectors if it.config.callback_limit and it.expect.callback_weight]
    assert len(weighed) > 15
    for it in weighed:
        assert it.expect.callback_weight
        assert it.config.callback_limit
        assert it.expect.callback_weight.weight().all_lte(it.config.callback_limit.weight()), it.id


ALTERED: list[tuple[str, str, Alteration]] = [
    ("scenarios/data-update", "a callback is dropped", lambda it: replace(it, callbacks=())),
    ("scenarios/root-changed", "another order", lambda it: replace(it, callbacks=tuple(it.callbacks[::-1]))),  # type: ignore[index]
    ("scenarios/data-update", "another weight", lambda it: replace(it, consumed=VectorWeight(0, 0))),
    ("scenarios/exhausted", "the cursor is cleared", lambda it: replace(it, cursor=None)),
    ("scenarios/exhausted", "the pass is complete", lambda it: replace(it, complete=True, stopped_at=None)),
    ("scenarios/initial-processing", "an entry is missing", lambda it: replace(it, after=it.after[1:])),  # type: ignore[index]
    ("scenarios/data-update", "an event is missing", lambda it: replace(it, events=())),
    ("scenarios/re-enable", "a call succeeds", lambda it: replace(it, call_results=("ok", "ok"))),
    ("scenarios/all-accessed", "no panic", lambda _: BlockExpectation()),
    (
        "scenarios/all-accessed",
        "another cause",
        lambda it: BlockExpectation(panic=replace(it.panic, cause="DuplicateNode")),  # type: ignore[type-var]
    ),
    (
        "scenarios/synchronization",
        "a byte of storage",
        lambda it: replace(it, after=((it.after[0][0], flipped(it.after[0][1])), *it.after[1:])),  # type: ignore[index]
    ),
]


@pytest.mark.parametrize(
    ("name", "alter"), [(name, alter) for name, _, alter in ALTERED], ids=[it[1] for it in ALTERED]
)
def test_an_altered_expectation_is_noticed(vectors: list[BlockVector], name: str, alter: Alteration) -> None:
    it = named(vectors, name)
    assert SUBSCRIBER.difference(it) == ""
    altered = replace(it, expect=alter(it.expect))
    assert altered != it
    assert SUBSCRIBER.difference(altered).startswith("expect")


def test_altered_pruning_and_altered_nodes_are_noticed(vectors: list[BlockVector]) -> None:
    it = named(vectors, "scenarios/partial-caching")
    assert it.pruned
    assert SUBSCRIBER.difference(replace(it, pruned=it.pruned[1:])).startswith("pruned")
    nodes = [flipped(node) if place == it.given[0] else node for place, node in enumerate(it.nodes)]
    assert SUBSCRIBER.difference(replace(it, nodes=tuple(nodes)))


def test_shares_and_hashed_keys_are_computed_anew(vectors: list[BlockVector]) -> None:
    shared = named(vectors, "scenarios/heavy-block")
    assert shared.share
    assert shared.share.pubsub_bytes == shared.budget.proof_size == 262_144
    altered = replace(shared, share=replace(shared.share, pubsub_bytes=1))
    assert SUBSCRIBER.difference(altered).startswith("share")
    hashed = named(vectors, "scenarios/compile-time-hashing")
    ((data, key),) = hashed.hashed_keys
    assert (unhexed(data), unhexed(key)) == (b"my_key", blake2_256(b"my_key"))
    assert SUBSCRIBER.difference(replace(hashed, hashed_keys=((data, flipped(key)),))).startswith("hashed_keys")


def test_a_vector_whose_modes_differ_is_not_written(
    vectors: list[BlockVector], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = named(vectors, "scenarios/exhausted")
    after, calls = Turns.after, iter(range(2))
    monkeypatch.setattr(Turns, "after", lambda self, at: Turn(at, None) if next(calls) else after(self, at))
    with pytest.raises(AssertionError, match="PRUNE"):
        recomputed(it)


def forget_what_is_owed(patch: pytest.MonkeyPatch) -> None:
    """A crowded pass owes nothing."""
    after = Turns.after
    patch.setattr(Turns, "after", lambda self, at: after(self, at)._replace(owed=None))


OF_THE_PALLET = [
    *(
        mutate
        for mutate, _, _ in TRAP_MUTANTS
        if mutate not in {never_roll_back, demand_after_the_callbacks, shuffle_apart}
    ),
    *dict.fromkeys(mutate for _, mutate in INTERRUPTED_MUTANTS),
    forget_what_is_owed,
]
"""Mutants of the pass; the others are of the pallet above it, which holds the block together."""


@pytest.mark.slow
@pytest.mark.parametrize("mutate", OF_THE_PALLET, ids=lambda it: it.__name__)
def test_the_vectors_catch_every_mutant_that_the_pallets_tests_catch(
    vectors: list[BlockVector], mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(SUBSCRIBER.difference(it) for it in vectors)


def test_an_unknown_call_is_refused(vectors: list[BlockVector]) -> None:
    it = replace(named(vectors, "scenarios/re-enable"), calls=(("apply", 1_000),))
    assert "a call is one of" in SUBSCRIBER.difference(it)


def test_numbers_above_two_to_the_53_are_text(vectors: list[BlockVector]) -> None:
    it = named(vectors, "scenarios/meter/unlimited")
    assert it.budget == VectorWeight(str(2**64 - 1), str(2**64 - 1))
    assert vector.number(2**53) == 2**53
