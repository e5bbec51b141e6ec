"""Vectors of other policies: what the choices of public drafts do, on the same small histories."""

from collections.abc import Iterator, Mapping

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes
from relaycast.vectors.subscriber.scenarios import K
from relaycast.vectors.subscriber.small_network import ALPHA, OTHER_PUBLIC, PUBLIC, About, SmallNetwork, path_key
from relaycast.vectors.vector import VectorSource

A, B, C, D, E, F = K

OTHERS: tuple[tuple[str, Mapping[str, str], str], ...] = (
    ("numeric", {"order": "numeric"}, "publishers in the order of their ids"),
    ("all-keys", {"callback": "all-keys"}, "every key of a changed publisher is told"),
    ("no-cache", {"cache": "none"}, "nothing is cached"),
    ("after-first-key", {"root_commit": "after-first-key"}, "the new root is stored although keys are left"),
    ("forget-unchanged", {"root_commit": "forget-unchanged"}, "roots of unchanged publishers are forgotten"),
    ("values-only", {"metering": "values-only"}, "nodes of the proof are not charged"),
    ("several", {"order": "numeric", "callback": "all-keys", "cache": "none"}, "several choices at once"),
)


def _history(name: str, policies: Mapping[str, str], why: str) -> Iterator[BlockVector]:
    """Yield a first sight, an unchanged block, a change, a pass cut short, its rest, and a deletion."""
    network = SmallNetwork(policies=policies)
    source = VectorSource(trap=name)
    for publisher in (OTHER_PUBLIC, PUBLIC, ALPHA)[: 2 + (name == "numeric")]:
        network.subscribe(publisher, [A, B])
        network.publish(publisher, K[:3], str(publisher).encode() * 6)

    def about(part: str, what: str) -> About:
        return About(f"policies/{name}/{part}", f"{why}: {what}", source)

    yield network.block(about("first", "first sight"), seed=b"1")
    yield network.block(about("unchanged", "nothing changed"), seed=b"2")
    network.publish(PUBLIC, [A], b"changed" * 4)
    yield network.block(about("changed", "one key changed"), seed=b"3")
    network.publish(PUBLIC, [A, B], b"again" * 6)
    network.publish(OTHER_PUBLIC, [B], b"again" * 6)
    network.seal()
    tight = about("cut-short", "a pass is cut short")
    paid = costs(network.honest(tight, seed=b"4", seal=False))
    yield network.block(tight, budget=of_bytes(max(0, paid[-1] - 1)), seed=b"4", seal=False)
    yield network.block(about("same", "the rest of it"), seed=b"5", seal=False)
    if name == "after-first-key":
        return  # its node caches hold what no root accounts for: no text says what becomes of that
    network.delete(PUBLIC, [A])
    yield network.block(about("deleted", "a key is deleted"), seed=b"6")


def _short_bound() -> Iterator[BlockVector]:
    """Yield what a bound of 512 bytes leaves out: every full branch."""
    network = SmallNetwork(policies={"max_cached_node": "512"})
    whole = [path_key(f"{nibble:x}") for nibble in range(16)]
    network.subscribe(ALPHA, whole[:1])
    network.publish(ALPHA, whole, b"\x01")
    source = VectorSource(trap="max-cached-node")
    yield network.block(About("policies/max-cached-node/first", "a full branch of 531 bytes is not cached", source))
    for number in (1, 0, 0):
        network.publish(ALPHA, [whole[number]], bytes([network.number]))
        name, what = f"policies/max-cached-node/{network.number}", "a foreign key" if number else "the key"
        yield network.block(
            About(name, f"{what} changed: the full branch is read again, its key is told again", source)
        )


def policy_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of other policies."""
    for name, policies, why in OTHERS:
        yield from _history(name, policies, why)
    yield from _short_bound()
