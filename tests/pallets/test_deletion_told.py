"""Reported deletions (``NotifyDeletions``): one callback without a value for each delivered key proven absent."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    E,
    SmallNetwork,
    aside,
    costs,
    deleted,
    keys,
    of_bytes,
    path_key,
    staircase,
    stopped_at,
    told,
)
from pallets.subscriber_mutants import (
    forget_what_was_delivered_with_the_cache,
    keep_bits_where_keys_move,
    remember_deletions_as_delivered,
    tell_every_absent_key,
    tell_no_deletion_without_the_trie,
    tell_where_the_old_trie_had_it,
)
from pallets.subscriber_world import FREE_READS, K, Recorder, World
from pallets.told_world import TOLD, bits, clear_cache, told_world
from relaycast_pallets import (
    CombinedHandlers,
    Origin,
    Panic,
    Policies,
    State,
    SubscribedKey,
    Subscriber,
    System,
    derive_child_info,
)
from relaycast_pallets.subscriber.subscription import Subscriptions
from relaycast_pallets.subscriber.variants.deletions import bitmap_of, keys_in
from relaycast_xcm.primitives import ParaId, Weight
from vector_fields import VectorSource
from yielded_vectors import yields

ROOT = Origin.root()


ABC, ABCD = [A, B, C], [A, B, C, D]
TELLS = {"deletion": "told"}
CHANGES = [("added", ABCD), ("removed", [B, C]), ("others", [D, E])]
"""Other subscriptions of a reader that follows three keys."""


def about(name: str, why: str) -> About:
    return About(f"deletions/{name}", why, VectorSource(invariant=3))


def follower() -> SmallNetwork:
    """Return a network whose subscriber has seen the first three keys of a publisher that has four."""
    network = SmallNetwork(policies=TELLS)
    network.subscribe(ALPHA, ABC)
    for each in ABCD:
        network.publish(ALPHA, [each], each)
    network.block(about("before", "what comes first"))
    return network


@yields("subscriber/deletions")
def test_a_delivered_key_that_is_deleted_is_reported_once_and_behind_the_values() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TELLS)
    network.subscribe(ALPHA, ABC)
    network.publish(ALPHA, [A, B], b"value")
    yield network.block(about("key/first", "first sight: a bit for each delivered key; the absent one is not told"))
    network.delete(ALPHA, [A])
    network.publish(ALPHA, [B], b"newer")
    block = network.block(about("key/deleted", "a delivered key is deleted: told behind the values of its publisher"))
    assert (told(block), deleted(block)) == ([B], [A])
    yield block
    network.publish(ALPHA, [D], b"foreign")
    block = network.block(about("key/once", "a deletion is told once"))
    assert not deleted(block)
    yield block
    network.publish(ALPHA, [A, C], b"back")
    yield network.block(about("key/back", "the key comes back, with another that was never there"))
    network.delete(ALPHA, ABCD)
    block = network.block(
        about("key/all", "the child trie goes: every delivered key is told, in the order of the keys")
    )
    assert deleted(block) == ABC
    yield block
    yield network.block(about("key/nothing", "the child trie is still absent: nothing is told"))
    network.publish(ALPHA, [B], b"anew")
    yield network.block(about("key/anew", "the child trie is back"))


@yields("subscriber/deletions")
def test_keys_proven_absent_before_a_pass_stops_are_reported_and_the_others_in_the_next_block() -> Iterator[
    BlockVector
]:
    network = follower()
    network.delete(ALPHA, [A, C])
    network.publish(ALPHA, [B], b"changed" * 8)
    network.seal()
    paid = costs(network.honest(about("", ""), seal=False))
    for number, proof_size in enumerate((paid[-1] - 1, paid[-2], paid[len(paid) // 2])):
        branch = aside(network)
        cut = about(f"cut-short/{number}", "what was proven absent before the stop is told, the rest waits")
        yield branch.block(cut, budget=of_bytes(proof_size), seal=False)
        yield branch.block(about(f"cut-short/{number}-rest", "the rest is told, nothing twice"), seal=False)


@yields("subscriber/deletions")
def test_where_the_child_trie_is_gone_the_keys_before_the_cursor_wait() -> Iterator[BlockVector]:
    network = follower()
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta" * 20)
    network.publish(ALPHA, ABC, b"next" * 10)
    network.seal()
    yield stopped_at(network, about("cursor/first", "a pass stops inside of a publisher"), B)
    network.delete(ALPHA, ABCD)
    network.seal()
    paid = costs(network.honest(about("", ""), seal=False))
    short = about("cursor/absent", "the child trie is gone: keys from the cursor on are told, those before it wait")
    yield network.block(short, budget=of_bytes(paid[-1] - 1), seal=False)
    yield network.block(about("cursor/rest", "the keys before the cursor are told"), seal=False)


@yields("subscriber/deletions")
@pytest.mark.parametrize(("name", "wanted"), [*CHANGES, ("dropped", [])])
def test_deletions_of_delivered_keys_that_are_still_wanted_are_reported_while_the_subscription_changes(
    name: str, wanted: list[SubscribedKey]
) -> Iterator[BlockVector]:
    network = follower()
    network.delete(ALPHA, [A, C])
    network.subscribe(ALPHA, wanted)
    what = f"keys are deleted while the subscription changes ({name})"
    block = network.block(about(f"subscription/{name}", what))
    assert deleted(block) == [each for each in (A, C) if each in wanted]
    yield block
    network.subscribe(ALPHA, ABC)
    network.delete(ALPHA, [B])
    back = about(f"subscription/{name}-back", "the first subscription comes back, another key is deleted")
    block = network.block(back)
    assert deleted(block) == [each for each in [B] if each in wanted]
    yield block


@yields("subscriber/deletions")
@pytest.mark.parametrize("name", ["clear_stored_roots", "clear_publisher_cache"])
def test_delivered_keys_are_still_known_after_a_call_that_clears(name: str) -> Iterator[BlockVector]:
    network, slug = follower(), name.replace("_", "-")
    call = (name, int(ALPHA))
    yield network.block(about(f"calls/{slug}", f"{name}: what was delivered is still known"), calls=(call, call))
    network.delete(ALPHA, [A])
    yield network.block(about(f"calls/{slug}-deleted", f"a key is deleted after {name}: it is told"))


@yields("subscriber/deletions")
def test_the_deletion_of_an_entry_that_could_not_be_decoded_is_not_reported() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TELLS, config=msgspec.structs.replace(SMALL, max_trie_depth=4))
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], b"value")
    network.write(ALPHA, B, b"\xff")
    yield network.block(about("undecodable/first", "what is no entry is not delivered"))
    network.delete(ALPHA, [B])
    yield network.block(about("undecodable/deleted", "its deletion is not told"))
    network = SmallNetwork(policies=TELLS)
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], b"value")
    network.write(ALPHA, B, b"")
    yield network.block(about("undecodable/empty", "no bytes are no entry, and yet the key is not absent"))
    network.publish(ALPHA, [B], b"value")
    yield network.block(about("undecodable/repaired", "the first entry in its place is delivered"))


@yields("subscriber/deletions")
def test_a_publisher_that_is_disabled_reports_no_deletion() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TELLS, config=msgspec.structs.replace(SMALL, max_trie_depth=3))
    network.subscribe(ALPHA, [path_key("0"), path_key("f")])
    network.publish(ALPHA, [path_key("0"), path_key("f")], b"value")
    network.block(about("", ""))
    network.delete(ALPHA, [path_key("0")])
    network.publish(ALPHA, staircase(4, subscribed=path_key("f")), b"deep")
    yield network.block(about("disabled", "a publisher that is disabled tells no deletion"))


@yields("subscriber/deletions")
def test_keys_dealt_with_count_as_delivered_where_the_policy_comes_in_mid_run() -> Iterator[BlockVector]:
    for name in ("settled", "interrupted"):
        network = SmallNetwork()
        network.subscribe(ALPHA, ABC)
        for each in ABCD:
            network.publish(ALPHA, [each], each)
        network.seal()
        if name == "settled":
            network.block(about("", ""), seal=False)
        else:
            stopped_at(network, about("", ""), B)
        network.policies = TELLS
        network.delete(ALPHA, [A, C])
        why = "the policy comes in mid-run: keys that were dealt with count as delivered"
        yield network.block(about(f"switched-on/{name}", f"{why} ({name})"))


@yields("subscriber/deletions")
def test_where_the_policy_comes_in_mid_run_no_bitmap_is_written_before_a_wanted_key_changes() -> Iterator[BlockVector]:
    for name, foreign in (("unchanged", []), ("foreign", [D])):
        network = SmallNetwork()
        network.subscribe(ALPHA, ABC)
        network.publish(ALPHA, ABCD, b"value")
        network.block(about("", ""))
        network.policies = TELLS
        network.publish(ALPHA, foreign, b"foreign")
        why = f"the policy comes in mid-run and nothing of it is told ({name}): no bitmap is written yet"
        yield network.block(about(f"left-alone/{name}", why))
    network, absent = SmallNetwork(), path_key("10")
    network.subscribe(ALPHA, [path_key("0"), absent])
    network.publish(ALPHA, [path_key(name) for name in ("0", "11", "12")], bytes(20))
    network.seal()
    stopped_at(network, about("", ""), absent)
    network.policies = TELLS
    why = "bases without a root, and a rest without a change: no bitmap is written yet"
    yield network.block(about("left-alone/interrupted", why))


@yields("subscriber/deletions")
def test_a_bitmap_of_zeros_stays() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TELLS)
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [D], b"foreign")
    yield network.block(about("zeros/first", "a publisher without a wanted key: a bitmap of zeros"))
    clear = [("clear_stored_roots", int(ALPHA))]
    yield network.block(about("zeros/cleared", "its root is cleared: the bitmap of zeros stays"), calls=clear)
    yield network.block(about("zeros/waits", "the pass does not come to it: the bitmap stays"), budget=of_bytes(0))
    yield network.block(about("zeros/read", "the pass comes to it"))
    network = SmallNetwork(policies=TELLS, config=msgspec.structs.replace(SMALL, max_trie_depth=3))
    network.subscribe(ALPHA, [path_key("0"), path_key("f")])
    network.publish(ALPHA, [path_key("8")], b"foreign")
    network.block(about("", ""))
    network.publish(ALPHA, [path_key("0"), *staircase(4, subscribed=path_key("f"))], b"deep")
    yield network.block(about("zeros/disabled", "a publisher with a root is disabled: its bitmap of zeros stays"))


@yields("subscriber/deletions")
def test_the_bitmap_follows_the_keys_of_a_publisher_that_the_pass_does_not_come_to() -> Iterator[BlockVector]:
    for name, wanted in CHANGES:
        network = follower()
        network.delete(ALPHA, [A, C])
        network.subscribe(ALPHA, wanted)
        why = f"the subscription changes ({name}), no byte is left: the bitmap follows the keys"
        yield network.block(about(f"not-come-to/{name}", why), budget=of_bytes(0))
        yield network.block(about(f"not-come-to/{name}-rest", "what was delivered and is still wanted is told"))


@yields("subscriber/deletions")
def test_the_bitmap_is_as_many_whole_bytes_as_its_keys_need() -> Iterator[BlockVector]:
    for count in (8, 9):
        network, wanted = SmallNetwork(policies=TELLS), keys(count)
        network.subscribe(ALPHA, wanted)
        network.publish(ALPHA, [*wanted[1:4], *wanted[6:]], b"value")
        yield network.block(about(f"bitmap/{count}", f"the bitmap of {count} keys"))
        network.delete(ALPHA, [wanted[2], wanted[-1]])
        yield network.block(about(f"bitmap/{count}-deleted", f"two of {count} keys are deleted, the last among them"))


# Worlds


class Deaf:
    """A handler that has no ``on_data_deleted``."""

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return [(ALPHA, K[:1])], Weight.ZERO

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: object) -> Weight:
        raise AssertionError("never called")


def test_a_key_that_never_existed_is_not_reported_as_deleted() -> None:
    """Nor where the publisher had no child trie in the first block, and got one without the key."""
    world = World(policies=TOLD)
    world.subscribe(ALPHA, K[:3])
    assert world.block().deleted == ()
    assert bits(world) is None
    for change in (b"1", b"2"):
        world.publish(ALPHA, K[3:4], change)
        assert world.block().deleted == ()
        assert bits(world) == "00000000"
    world.publish(ALPHA, K[:1])
    assert world.block().called == [(ALPHA, K[0])]
    world.delete(ALPHA, K[:4])
    assert world.block().deleted == ((ALPHA, K[0]),)


def test_what_the_handler_returns_is_weighed() -> None:
    world = told_world()
    world.handler.weight = Weight(5, 7)
    world.delete(ALPHA, K[:2])
    world.block()
    assert world.subscriber.delivered.weight == Weight(10, 14)


def test_an_entry_that_is_no_entry_is_not_delivered_and_its_deletion_is_not_told() -> None:
    world = told_world()
    child = world.relay.child(derive_child_info(ALPHA))
    child.put(K[0], b"\xff")
    child.put(K[5], b"\xff")
    world.subscribe(ALPHA, [*K[:3], K[5]])
    assert not world.block().deleted
    world.delete(ALPHA, [K[0], K[5]])
    assert world.block().deleted == ((ALPHA, K[0]),), "the handler still had the first key's value"


def test_a_cleared_publisher_that_leaves_is_forgotten_altogether() -> None:
    world = told_world()
    clear_cache(world)
    world.subscribe(ALPHA, [])
    world.block()
    assert world.kept() == {}


def test_what_a_disabled_publisher_deletes_is_told_when_it_is_enabled() -> None:
    deep = staircase(10)
    world = World(policies=TOLD)
    world.subscribe(ALPHA, [deep[0], *K[:2]])
    world.publish(ALPHA, [deep[0], *K])
    world.block()
    world.publish(ALPHA, deep, bytes(40))
    world.delete(ALPHA, K[:1])
    assert world.block().deleted == ()
    assert ALPHA in world.storage.disabled_publishers
    world.delete(ALPHA, deep[1:])
    assert world.block().deleted == ()
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert world.block().deleted == ((ALPHA, K[0]),)


def test_a_collator_cannot_hide_a_deletion() -> None:
    world = told_world()
    world.delete(ALPHA, K[1:2])
    world.seal()
    honest, _ = world.prune()
    static = world.static_nodes()
    assert len(honest.relay_chain_state) > len(static)
    for at in range(len(honest.relay_chain_state)):
        nodes = honest.relay_chain_state[:at] + honest.relay_chain_state[at + 1 :]
        before = world.everything()
        with pytest.raises(Panic):
            world.parachain.set_validation_data(replace(honest, relay_chain_state=nodes), b"")
        assert world.everything() == before
    assert world.block(seal=False).deleted == ((ALPHA, K[1]),)


def test_a_handler_that_cannot_be_told_is_refused_at_set_up() -> None:
    state = State()
    with pytest.raises(ValueError, match=r"^deletions are told to handlers with on_data_deleted, got Deaf$"):
        Subscriber(System(state), Deaf(), policies=TOLD)
    with pytest.raises(ValueError, match="got Deaf"):
        Subscriber(System(state), CombinedHandlers([Recorder(), Deaf()]), policies=TOLD)
    assert Subscriber(System(state), CombinedHandlers([Recorder(), Deaf()])).policies == Policies()


def test_of_combined_handlers_those_are_told_that_subscribe_to_the_key() -> None:
    first, second = Recorder({ALPHA: K[:2]}, weight=Weight(1, 1)), Recorder({ALPHA: K[1:3]}, weight=Weight(2, 4))
    combined = CombinedHandlers([first, second])
    assert combined.on_data_deleted(ALPHA, K[1]) == Weight(3, 5)
    assert combined.on_data_deleted(ALPHA, K[2]) == Weight(2, 4)
    assert combined.on_data_deleted(PUBLIC, K[1]) == Weight.ZERO
    assert (first.deleted, second.deleted) == ([(ALPHA, K[1])], [(ALPHA, K[1]), (ALPHA, K[2])])


@given(st.sets(st.binary(min_size=32, max_size=32), max_size=40), st.data())
def test_bits_stand_for_the_keys_that_they_were_made_of(drawn: set[bytes], data: st.DataObject) -> None:
    every = sorted(map(SubscribedKey, drawn))
    chosen = frozenset(data.draw(st.sets(st.sampled_from(every)))) if every else frozenset()
    bitmap = bitmap_of(every, chosen)
    assert len(bitmap) == (len(every) + 7) // 8
    assert keys_in(bitmap, every) == chosen


@given(st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(K), min_size=1)), max_size=6), st.integers(0, 3_000))
def test_telling_reads_nothing_more_of_the_relay_chain(
    changes: list[tuple[bool, set[SubscribedKey]]], room: int
) -> None:
    """The proof that shows a deletion to a reader who is told is the one that moves a silent reader on."""
    worlds = [World(config=FREE_READS, policies=policies) for policies in (Policies(), TOLD)]
    for world in worlds:
        world.subscribe(ALPHA, K)
        world.publish(ALPHA, K, bytes(60))
    for number, (deletes, some) in enumerate(changes):
        silent, telling = worlds
        for world in worlds:
            if deletes:
                world.delete(ALPHA, some)
            else:
                world.publish(ALPHA, some, b"%d" % number)
        assert silent.block(room).result.reads == telling.block(room).result.reads
        assert silent.handler.calls == telling.handler.calls
        assert silent.storage.previous_roots() == telling.storage.previous_roots()


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (tell_every_absent_key, test_a_delivered_key_that_is_deleted_is_reported_once_and_behind_the_values),
    (
        tell_where_the_old_trie_had_it,
        lambda: test_delivered_keys_are_still_known_after_a_call_that_clears("clear_stored_roots"),
    ),
    (tell_no_deletion_without_the_trie, test_a_delivered_key_that_is_deleted_is_reported_once_and_behind_the_values),
    (remember_deletions_as_delivered, test_a_delivered_key_that_is_deleted_is_reported_once_and_behind_the_values),
    (
        forget_what_was_delivered_with_the_cache,
        lambda: test_delivered_keys_are_still_known_after_a_call_that_clears("clear_publisher_cache"),
    ),
    (
        keep_bits_where_keys_move,
        lambda: test_deletions_of_delivered_keys_that_are_still_wanted_are_reported_while_the_subscription_changes(
            "removed", [B, C]
        ),
    ),
]


@pytest.mark.parametrize(("mutant", "notices"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_pallet_that_tells_wrongly_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], None], notices: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices()
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        notices()
