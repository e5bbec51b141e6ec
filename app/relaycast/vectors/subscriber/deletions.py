"""Vectors of told deletions: the policy under which a proven absence is a callback without a value."""

from collections.abc import Iterator

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes
from relaycast.vectors.subscriber.scenarios import K
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    BETA,
    SMALL,
    About,
    SmallNetwork,
    keys,
    path_key,
    staircase,
)
from relaycast.vectors.vector import VectorSource, hexed

A, B, C, D, E, F = K
TOLD = {"deletion": "told"}


def about(name: str, why: str) -> About:
    return About(f"deletions/{name}", why, VectorSource(invariant=3))


def _following(wanted: int = 3) -> SmallNetwork:
    """Return a network whose subscriber has seen its keys under the policy."""
    network = SmallNetwork(policies=TOLD)
    network.subscribe(ALPHA, K[:wanted])
    for each in K[:4]:
        network.publish(ALPHA, [each], each)
    network.block(about("before", "what comes first"))
    return network


def _a_key() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TOLD)
    network.subscribe(ALPHA, K[:3])
    network.publish(ALPHA, [A, B], b"value")
    yield network.block(about("key/first", "first sight: a bit for each delivered key; the absent one is not told"))
    network.delete(ALPHA, [A])
    network.publish(ALPHA, [B], b"newer")
    yield network.block(about("key/deleted", "a delivered key is deleted: told behind the values of its publisher"))
    network.publish(ALPHA, [D], b"foreign")
    yield network.block(about("key/once", "a deletion is told once"))
    network.publish(ALPHA, [A, C], b"back")
    yield network.block(about("key/back", "the key comes back, with another that was never there"))
    network.delete(ALPHA, K)
    yield network.block(about("key/all", "the child trie goes: every delivered key is told, in the order of the keys"))
    yield network.block(about("key/nothing", "the child trie is still absent: nothing is told"))
    network.publish(ALPHA, [B], b"anew")
    yield network.block(about("key/anew", "the child trie is back"))


def _cut_short() -> Iterator[BlockVector]:
    network = _following()
    network.delete(ALPHA, [A, C])
    network.publish(ALPHA, [B], b"changed" * 8)
    network.seal()
    paid = costs(network.honest(about("", ""), seal=False))
    for number, proof_size in enumerate((paid[-1] - 1, paid[-2], paid[len(paid) // 2])):
        branch = aside(network)
        cut = about(f"cut-short/{number}", "what was proven absent before the stop is told, the rest waits")
        yield branch.block(cut, budget=of_bytes(proof_size), seal=False)
        yield branch.block(about(f"cut-short/{number}-rest", "the rest is told, nothing twice"), seal=False)


def aside(network: SmallNetwork) -> SmallNetwork:
    """Return a network on the same relay chain whose subscriber goes its own way."""
    return SmallNetwork(
        config=network.config,
        policies=network.policies,
        relay=network.relay,
        number=network.number,
        kept=dict(network.kept),
        wanted=list(network.wanted),
    )


def stopped_at(network: SmallNetwork, name: About, key: bytes) -> BlockVector:
    """Return the first block that a budget stops at this key of 1000, and go on from it."""
    for proof_size in costs(network.honest(name, seal=False)):
        vector = network.honest(name, budget=of_bytes(proof_size), seal=False)
        if vector.expect.stopped_at == (int(ALPHA), hexed(key)):
            network.follow(vector)
            return vector
    raise AssertionError(f"no budget stops at 0x{key.hex()}")


def _around_a_cursor() -> Iterator[BlockVector]:
    network = _following()
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta" * 20)
    network.publish(ALPHA, K[:3], b"next" * 10)
    network.seal()
    yield stopped_at(network, about("cursor/first", "a pass stops inside of a publisher"), B)
    network.delete(ALPHA, K)
    network.seal()
    paid = costs(network.honest(about("", ""), seal=False))
    short = about("cursor/absent", "the child trie is gone: keys from the cursor on are told, those before it wait")
    yield network.block(short, budget=of_bytes(paid[-1] - 1), seal=False)
    yield network.block(about("cursor/rest", "the keys before the cursor are told"), seal=False)


def _changed_subscriptions() -> Iterator[BlockVector]:
    for name, wanted in (("added", K[:4]), ("removed", [B, C]), ("others", [D, E]), ("dropped", [])):
        network = _following()
        network.delete(ALPHA, [A, C])
        network.subscribe(ALPHA, wanted)
        what = f"keys are deleted while the subscription changes ({name})"
        yield network.block(about(f"subscription/{name}", what))
        network.subscribe(ALPHA, K[:3])
        network.delete(ALPHA, [B])
        yield network.block(
            about(f"subscription/{name}-back", "the first subscription comes back, another key is deleted")
        )


def _calls() -> Iterator[BlockVector]:
    for name in ("clear_stored_roots", "clear_publisher_cache"):
        network, slug = _following(), name.replace("_", "-")
        call = (name, int(ALPHA))
        yield network.block(about(f"calls/{slug}", f"{name}: what was delivered is still known"), calls=(call, call))
        network.delete(ALPHA, [A])
        yield network.block(about(f"calls/{slug}-deleted", f"a key is deleted after {name}: it is told"))


def _never_delivered() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TOLD, config=replace(SMALL, max_trie_depth=4))
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], b"value")
    network.write(ALPHA, B, b"\xff")
    yield network.block(about("undecodable/first", "what is no entry is not delivered"))
    network.delete(ALPHA, [B])
    yield network.block(about("undecodable/deleted", "its deletion is not told"))
    network = SmallNetwork(policies=TOLD)
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], b"value")
    network.write(ALPHA, B, b"")
    yield network.block(about("undecodable/empty", "no bytes are no entry, and yet the key is not absent"))
    network.publish(ALPHA, [B], b"value")
    yield network.block(about("undecodable/repaired", "the first entry in its place is delivered"))
    network = SmallNetwork(policies=TOLD, config=replace(SMALL, max_trie_depth=3))
    network.subscribe(ALPHA, [path_key("0"), path_key("f")])
    network.publish(ALPHA, [path_key("0"), path_key("f")], b"value")
    network.block(about("", ""))
    network.delete(ALPHA, [path_key("0")])
    network.publish(ALPHA, staircase(4, subscribed=path_key("f")), b"deep")
    yield network.block(about("disabled", "a publisher that is disabled tells no deletion"))


def _switched_on() -> Iterator[BlockVector]:
    for name in ("settled", "interrupted"):
        network = SmallNetwork()
        network.subscribe(ALPHA, K[:3])
        for each in K[:4]:
            network.publish(ALPHA, [each], each)
        network.seal()
        if name == "settled":
            network.block(about("", ""), seal=False)
        else:
            stopped_at(network, about("", ""), B)
        network.policies = TOLD
        network.delete(ALPHA, [A, C])
        why = "the policy comes in mid-run: keys that were dealt with count as delivered"
        yield network.block(about(f"switched-on/{name}", f"{why} ({name})"))


def _left_alone() -> Iterator[BlockVector]:
    """Yield publishers of which no bitmap is written, and one whose bitmap of zeros stays."""
    for name, foreign in (("unchanged", []), ("foreign", [D])):
        network = SmallNetwork()
        network.subscribe(ALPHA, K[:3])
        network.publish(ALPHA, K[:4], b"value")
        network.block(about("", ""))
        network.policies = TOLD
        network.publish(ALPHA, foreign, b"foreign")
        why = f"the policy comes in mid-run and nothing of it is told ({name}): no bitmap is written yet"
        yield network.block(about(f"left-alone/{name}", why))
    network, absent = SmallNetwork(), path_key("10")
    network.subscribe(ALPHA, [path_key("0"), absent])
    network.publish(ALPHA, [path_key(name) for name in ("0", "11", "12")], bytes(20))
    network.seal()
    stopped_at(network, about("", ""), absent)
    network.policies = TOLD
    why = "bases without a root, and a rest without a change: no bitmap is written yet"
    yield network.block(about("left-alone/interrupted", why))
    network = SmallNetwork(policies=TOLD)
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [D], b"foreign")
    yield network.block(about("zeros/first", "a publisher without a wanted key: a bitmap of zeros"))
    clear = [("clear_stored_roots", int(ALPHA))]
    yield network.block(about("zeros/cleared", "its root is cleared: the bitmap of zeros stays"), calls=clear)
    yield network.block(about("zeros/waits", "the pass does not come to it: the bitmap stays"), budget=of_bytes(0))
    yield network.block(about("zeros/read", "the pass comes to it"))


def _zeros_of_a_disabled_publisher() -> Iterator[BlockVector]:
    network = SmallNetwork(policies=TOLD, config=replace(SMALL, max_trie_depth=3))
    network.subscribe(ALPHA, [path_key("0"), path_key("f")])
    network.publish(ALPHA, [path_key("8")], b"foreign")
    network.block(about("", ""))
    network.publish(ALPHA, [path_key("0"), *staircase(4, subscribed=path_key("f"))], b"deep")
    yield network.block(about("zeros/disabled", "a publisher with a root is disabled: its bitmap of zeros stays"))


def _not_come_to() -> Iterator[BlockVector]:
    """Yield changed subscriptions of a publisher that the pass does not come to."""
    for name, wanted in (("added", K[:4]), ("removed", [B, C]), ("others", [D, E])):
        network = _following()
        network.delete(ALPHA, [A, C])
        network.subscribe(ALPHA, wanted)
        why = f"the subscription changes ({name}), no byte is left: the bitmap follows the keys"
        yield network.block(about(f"not-come-to/{name}", why), budget=of_bytes(0))
        yield network.block(about(f"not-come-to/{name}-rest", "what was delivered and is still wanted is told"))


def _whole_bytes() -> Iterator[BlockVector]:
    for count in (8, 9):
        network, wanted = SmallNetwork(policies=TOLD), keys(count)
        network.subscribe(ALPHA, wanted)
        network.publish(ALPHA, [*wanted[1:4], *wanted[6:]], b"value")
        yield network.block(about(f"bitmap/{count}", f"the bitmap of {count} keys"))
        network.delete(ALPHA, [wanted[2], wanted[-1]])
        yield network.block(about(f"bitmap/{count}-deleted", f"two of {count} keys are deleted, the last among them"))


def deletion_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of told deletions."""
    for scene in (
        _a_key,
        _cut_short,
        _around_a_cursor,
        _changed_subscriptions,
        _calls,
        _never_delivered,
        _switched_on,
        _left_alone,
        _zeros_of_a_disabled_publisher,
        _not_come_to,
        _whole_bytes,
    ):
        yield from scene()
