"""Vectors of subscriptions that change and of calls, also while a pass is interrupted."""

from collections.abc import Callable, Iterator, Sequence

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import of_bytes, values
from relaycast.vectors.subscriber.scenarios import K, following
from relaycast.vectors.subscriber.small_network import ALPHA, BETA, About, SmallNetwork, staircase
from relaycast.vectors.subscriber.traps import cut_short
from relaycast.vectors.vector import VectorSource, scenario
from relaycast_pallets.subscriber.subscription import SubscribedKey

A, B, C, D, E, F = K
CLEARS = scenario("Trie Node Caching / Subscription change clears cache")

Change = tuple[str, str, Sequence[SubscribedKey]]
CHANGES: tuple[Change, ...] = (
    ("added-before", "a key is added before the others", [A, B, C, D]),
    ("added-behind", "a key is added behind the others", [B, C, D, E]),
    ("added-all", "keys are added on all sides", K),
    ("removed-first", "the first key is removed", [C, D]),
    ("removed-last", "the last key is removed", [B, C]),
    ("replaced", "one key is replaced", [B, C, E]),
    ("others", "all keys are replaced", [A, E]),
    ("reordered", "the same keys in another order and twice: no change", [D, B, C, B]),
    ("dropped", "the publisher is dropped", []),
)


SOURCES = {
    "added": scenario("Subscription Handler / Adding subscriptions"),
    "dropped": scenario("Subscription Handler / Removing subscriptions requires cache clear"),
}


def about(name: str, why: str, source: VectorSource = CLEARS) -> About:
    return About(f"changes/{name}", why, source)


def _settled() -> SmallNetwork:
    network = SmallNetwork()
    network.subscribe(ALPHA, [B, C, D])
    for each in K:
        network.publish(ALPHA, [each], each)
    network.block(about("before", "what comes first"))
    return network


def _interrupted() -> SmallNetwork:
    network = SmallNetwork()
    network.subscribe(ALPHA, [B, C, D])
    for each in K:
        network.publish(ALPHA, [each], each)
    cut_short(network, about("before", "what comes first"), seal=True)
    return network


def _changed(kind: str, made: Callable[[], SmallNetwork]) -> Iterator[BlockVector]:
    for name, why, wanted in CHANGES:
        for part, proof_size in (("ample", 1 << 20), ("tight", 400), ("none", 0)):
            network = made()
            network.subscribe(ALPHA, wanted)
            source = SOURCES.get(name.partition("-")[0], CLEARS)
            vector = about(f"{kind}/{name}/{part}", f"{why} after a pass that was {kind}, budget: {part}", source)
            yield network.block(vector, budget=of_bytes(proof_size))


def _come_back() -> Iterator[BlockVector]:
    """Yield a publisher that is dropped in an interrupted pass and wanted again."""
    network = _interrupted()
    network.subscribe(ALPHA, [])
    yield network.block(about("come-back/dropped", "a publisher leaves: its bases and the cursor go with it"))
    network.subscribe(ALPHA, [B, C, D])
    yield network.block(about("come-back/again", "it comes back while some of its nodes are still cached"))


def _calls() -> Iterator[BlockVector]:
    source = VectorSource(upstream="clear_stored_roots_extrinsic")
    for name in ("clear_stored_roots", "clear_publisher_cache", "enable_publisher"):
        slug = name.replace("_", "-")
        for kind, made in (("settled", _settled), ("interrupted", _interrupted)):
            network = made()
            calls = [(name, int(publisher)) for publisher in (ALPHA, BETA)]
            first = About(
                f"calls/{slug}/{kind}", f"{name} after a pass that was {kind}; the other publisher has nothing", source
            )
            yield network.block(first, budget=of_bytes(0), calls=calls)
            yield network.block(first.at("next", f"the block after {name}"))
    network = following(ALPHA, BETA, wanted=1)
    network.publish(ALPHA, [A], b"new")
    calls = [(name, int(ALPHA)) for name in ("clear_stored_roots", "clear_publisher_cache", "clear_stored_roots")]
    both = About("calls/one-after-another", "a cleared root, then all, then no root is left", source)
    yield network.block(both, calls=calls)


def _clear_with_cursors() -> Iterator[BlockVector]:
    """Yield calls that clear the publisher that a cursor or an owed key stands at."""
    source = VectorSource(upstream="clear_publisher_cache_removes_all_entries")
    for publisher in (ALPHA, BETA):
        network = values(ALPHA, BETA, wanted=1, size=0)
        start = About("calls/cursors", "", source)
        for _ in range(3):
            network.block(start, budget=of_bytes(0), crowded=True, seal=False)
        part = About(f"calls/cursors/{publisher}", f"cursor and owed key stand: {publisher} is cleared", source)
        calls = [("clear_publisher_cache", int(publisher))]
        yield network.block(part, budget=of_bytes(0), crowded=True, calls=calls, seal=False)


def _disabled_changes() -> Iterator[BlockVector]:
    """Yield a disabled publisher whose subscription changes meanwhile."""
    source = scenario("Trie Depth Limit / Disabled publisher is skipped")
    for name, wanted in (("changed", [staircase(9)[0], A]), ("dropped", [])):
        network = SmallNetwork()
        network.subscribe(ALPHA, staircase(9)[:1])
        network.publish(ALPHA, staircase(9), b"deep")
        network.block(About("changes/disabled", "", source))
        network.subscribe(ALPHA, wanted)
        why = f"the subscription to a disabled publisher is {name}"
        enable = [("enable_publisher", int(ALPHA))]
        yield network.block(About(f"changes/disabled/{name}", why, source), calls=enable)
        network.subscribe(ALPHA, [A])
        network.delete(ALPHA, staircase(9)[4:])
        network.publish(ALPHA, [A], b"shallow")
        yield network.block(About(f"changes/disabled/{name}-enabled", f"{why}, then it is enabled", source))


def change_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of changed subscriptions and of calls."""
    yield from _changed("settled", _settled)
    yield from _changed("interrupted", _interrupted)
    yield from _come_back()
    yield from _calls()
    yield from _clear_with_cursors()
    yield from _disabled_changes()
