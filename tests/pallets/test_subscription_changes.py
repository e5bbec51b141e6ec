"""Subscriptions that change and calls that clear, after a pass that settled a publisher or was interrupted in it."""

from collections.abc import Callable, Iterator

import pytest

from pallets.block_vectors import (
    ALPHA,
    BETA,
    A,
    About,
    B,
    BlockVector,
    C,
    D,
    E,
    K,
    SmallNetwork,
    cut_short,
    following,
    of_bytes,
    staircase,
    told,
    trap,
    values,
)
from relaycast_pallets import SubscribedKey
from relaycast_trie.hasher import twox_128
from vector_fields import VectorSource, scenario
from yielded_vectors import yields

CLEARS = scenario("Trie Node Caching / Subscription change clears cache")
ADDED = scenario("Subscription Handler / Adding subscriptions")
DROPPED = scenario("Subscription Handler / Removing subscriptions requires cache clear")


FIRST = About("changes/before", "what comes first", CLEARS)


def unseen() -> SmallNetwork:
    """Return a network in which three of six keys are subscribed to."""
    network = SmallNetwork()
    network.subscribe(ALPHA, [B, C, D])
    for each in K:
        network.publish(ALPHA, [each], each)
    return network


def settled() -> SmallNetwork:
    network = unseen()
    network.block(FIRST)
    return network


def interrupted() -> SmallNetwork:
    network = unseen()
    cut_short(network, FIRST, seal=True)
    return network


BEFORE = [settled, interrupted]

CHANGES: list[tuple[str, str, list[SubscribedKey], VectorSource]] = [
    ("added-before", "a key is added before the others", [A, B, C, D], ADDED),
    ("added-behind", "a key is added behind the others", [B, C, D, E], ADDED),
    ("added-all", "keys are added on all sides", K, ADDED),
    ("removed-first", "the first key is removed", [C, D], CLEARS),
    ("removed-last", "the last key is removed", [B, C], CLEARS),
    ("replaced", "one key is replaced", [B, C, E], CLEARS),
    ("others", "all keys are replaced", [A, E], CLEARS),
    ("reordered", "the same keys in another order and twice: no change", [D, B, C, B], CLEARS),
    ("dropped", "the publisher is dropped", [], DROPPED),
]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(("name", "why", "wanted", "source"), CHANGES, ids=[name for name, *_ in CHANGES])
@yields("subscriber/changes")
def test_a_changed_subscription_is_noted_and_followed_as_far_as_the_budget_goes(
    before: Callable[[], SmallNetwork], name: str, why: str, wanted: list[SubscribedKey], source: VectorSource
) -> Iterator[BlockVector]:
    for budget, proof_size in (("ample", 1 << 20), ("tight", 400), ("none", 0)):
        network, kind = before(), before.__name__
        network.subscribe(ALPHA, wanted)
        after = f"{why} after a pass that was {kind}, budget: {budget}"
        about = About(f"changes/{kind}/{name}/{budget}", after, source)
        yield network.block(about, budget=of_bytes(proof_size))


NODES = twox_128(b"Subscriber") + twox_128(b"CachedTrieNodes")


@yields("subscriber/changes")
def test_a_publisher_that_leaves_an_interrupted_pass_leaves_its_nodes_alone_and_is_told_whole_again() -> Iterator[
    BlockVector
]:
    network = interrupted()
    network.subscribe(ALPHA, [])
    why = "a publisher leaves: its bases and the cursor go with it"
    yield network.block(About("changes/come-back/dropped", why, CLEARS))
    assert {raw[:32] for raw in network.kept} == {NODES}
    network.subscribe(ALPHA, [B, C, D])
    why = "it comes back while some of its nodes are still cached"
    again = network.block(About("changes/come-back/again", why, CLEARS))
    assert told(again) == [B, C, D]
    yield again


@yields("subscriber/traps")
def test_a_publisher_that_comes_back_is_new_and_told_although_nothing_changed() -> Iterator[BlockVector]:
    about = trap("subscribed-anew", "a publisher that comes back is new: its values are told although nothing changed")
    network = following(ALPHA, BETA)
    network.subscribe(ALPHA, ())
    yield network.block(about.at("left"))
    left = network.kept.items() - following(BETA).kept.items()
    assert {raw[:32] for raw, _ in left} == {NODES}
    network.subscribe(ALPHA, [A, B])
    back = network.block(about)
    assert told(back) == [A, B]
    yield back


# Calls.


def clearing(name: str, why: str, call: str = "clear_stored_roots_extrinsic") -> About:
    return About(f"calls/{name}", why, VectorSource(upstream=call))


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("call", ["clear_stored_roots", "clear_publisher_cache", "enable_publisher"])
@yields("subscriber/changes")
def test_a_call_by_root_clears_what_it_names_and_refuses_a_publisher_that_has_nothing(
    before: Callable[[], SmallNetwork], call: str
) -> Iterator[BlockVector]:
    network, kind = before(), before.__name__
    why = f"{call} after a pass that was {kind}; the other publisher has nothing"
    first = clearing(f"{call.replace('_', '-')}/{kind}", why)
    calls = [(call, int(publisher)) for publisher in (ALPHA, BETA)]
    yield network.block(first, budget=of_bytes(0), calls=calls)
    yield network.block(first.at("next", f"the block after {call}"))


@yields("subscriber/changes")
def test_a_root_that_is_cleared_cannot_be_cleared_again() -> Iterator[BlockVector]:
    network = following(ALPHA, BETA, wanted=1)
    network.publish(ALPHA, [A], b"new")
    calls = [(name, int(ALPHA)) for name in ("clear_stored_roots", "clear_publisher_cache", "clear_stored_roots")]
    block = network.block(clearing("one-after-another", "a cleared root, then all, then no root is left"), calls=calls)
    assert block.expect.call_results == ("ok", "ok", "PublisherRootNotFound")
    yield block


@pytest.mark.parametrize("publisher", [ALPHA, BETA])
@yields("subscriber/changes")
def test_a_cursor_and_an_owed_key_go_with_the_publisher_that_is_cleared(publisher: int) -> Iterator[BlockVector]:
    network = values(ALPHA, BETA, wanted=1, size=0)
    call = "clear_publisher_cache_removes_all_entries"
    for _ in range(3):
        network.block(clearing("cursors", "", call), budget=of_bytes(0), crowded=True, seal=False)
    about = clearing(f"cursors/{publisher}", f"cursor and owed key stand: {publisher} is cleared", call)
    calls = [("clear_publisher_cache", int(publisher))]
    yield network.block(about, budget=of_bytes(0), crowded=True, calls=calls, seal=False)


@pytest.mark.parametrize(("name", "wanted"), [("changed", [staircase(9)[0], A]), ("dropped", [])])
@yields("subscriber/changes")
def test_the_subscription_to_a_disabled_publisher_may_change(
    name: str, wanted: list[SubscribedKey]
) -> Iterator[BlockVector]:
    about = About("changes/disabled", "", scenario("Trie Depth Limit / Disabled publisher is skipped"))
    network = SmallNetwork()
    network.subscribe(ALPHA, staircase(9)[:1])
    network.publish(ALPHA, staircase(9), b"deep")
    network.block(about)
    network.subscribe(ALPHA, wanted)
    why = f"the subscription to a disabled publisher is {name}"
    yield network.block(about.at(name, why), calls=[("enable_publisher", int(ALPHA))])
    network.subscribe(ALPHA, [A])
    network.delete(ALPHA, staircase(9)[4:])
    network.publish(ALPHA, [A], b"shallow")
    enabled = network.block(about.at(f"{name}-enabled", f"{why}, then it is enabled"))
    assert told(enabled) == [A]
    yield enabled
