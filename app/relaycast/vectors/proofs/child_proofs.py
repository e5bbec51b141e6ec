"""Child tries below a top trie: the publishers' names, roots in the top trie, proofs of published keys."""

from collections.abc import Iterator
from random import Random

from relaycast.vectors.proofs.proof_run import state_of
from relaycast.vectors.proofs.proof_vector import ChildPairs, ProofMade, ProofVector, ProofVerification
from relaycast.vectors.proofs.trie_proofs import Pairs, drawn_keys, drawn_pairs
from relaycast.vectors.vector import VectorSource, entries, hexed, scenario
from relaycast_pallets.broadcaster.published_entry import PublishedEntry
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo, StateVersion, StorageProof, blake2_256, build_database

_DERIVED = scenario("Relay Proof Collection / Child trie key derivation")
_COLLECTED = scenario("Relay Proof Collection / Proof collection for subscriptions")
PUBLISHERS = (0, 1_000, 1_999, 2_000, 3_000, (1 << 32) - 1)


def vectors(seed: int) -> Iterator[ProofVector]:
    """Yield the vectors; random tries are drawn from ``seed``."""
    yield from _names()
    yield from _collected()
    yield from _shapes()
    yield from _random_children(seed)
    yield from _verified()


def published(names: str, *, length: int = 4) -> Pairs:
    """Return what a child trie holds of a publisher that wrote these keys in block 1."""
    return {blake2_256(name.encode()): PublishedEntry((name * length).encode(), 0, 1).encode() for name in names}


def _child(para_id: int, pairs: Pairs) -> ChildPairs:
    return ChildPairs(hexed(derive_child_info(para_id).storage_key), entries(pairs))


def _made(
    name: str,
    why: str,
    source: VectorSource,
    keys: list[bytes],
    children: list[ChildPairs],
    *,
    top: Pairs | None = None,
    child: bytes | None,
    version: int = 1,
) -> ProofMade:
    return ProofMade(
        id=f"proofs/child/{name}",
        why=why,
        source=source,
        state_version=version,
        pairs=entries({b":code": b"code", b"other": b"1"} if top is None else top),
        keys=list(map(hexed, keys)),
        children=children,
        child=None if child is None else hexed(child),
    )


def _names() -> Iterator[ProofVector]:
    for para_id in PUBLISHERS:
        name = derive_child_info(para_id).storage_key
        top_key = CHILD_STORAGE_PREFIX + name
        yield _made(
            f"name-{para_id}",
            f"the child trie of publisher {para_id} is called (b'pubsub', {para_id}) in SCALE",
            _DERIVED,
            [blake2_256(b"a")],
            [_child(para_id, published("a"))],
            child=name,
        )
        yield _made(
            f"root-{para_id}",
            f"the root of publisher {para_id} is a value of the top trie",
            _DERIVED,
            [top_key],
            [_child(para_id, published("a"))],
            child=None,
        )


def _collected() -> Iterator[ProofVector]:
    keys = [blake2_256(name.encode()) for name in "abc"]
    name = derive_child_info(1_000).storage_key
    everything = _child(1_000, published("abcdefghij"))
    yield _made("subscribed", "the paths to three keys of ten", _COLLECTED, keys, [everything], child=name)
    for count in (1, 2):
        yield _made(
            f"subscribed-{count}",
            f"the paths to {count} keys of ten",
            _COLLECTED,
            keys[:count],
            [everything],
            child=name,
        )
    large = _child(1_000, published("abcdefghij", length=40))
    yield _made("subscribed-large", "values outside of their nodes", _COLLECTED, keys, [large], child=name)
    missing = [*keys, blake2_256(b"missing")]
    yield _made("subscribed-missing", "one key was never published", _COLLECTED, missing, [everything], child=name)
    others = [_child(para_id, published("abc")) for para_id in (1_000, 1_001, 2_000)]
    yield _made("subscribed-one-of-three", "other publishers' tries are no part", _COLLECTED, keys, others, child=name)


def _shapes() -> Iterator[ProofVector]:
    source = VectorSource(upstream="prove_child_read")
    name = derive_child_info(2_000).storage_key
    key = blake2_256(b"a")
    there = _child(2_000, published("ab"))
    yield _made("absent", "no such child trie: the absence of its root", source, [key], [], child=name)
    yield _made(
        "absent-beside", "only another publisher has one", source, [key], [_child(2_001, published("a"))], child=name
    )
    empty = _child(2_000, {})
    yield _made("empty", "a child trie without keys has no root in the top trie", source, [key], [empty], child=name)
    yield _made("no-keys", "no keys: the way to the child's root alone", source, [], [there], child=name)
    yield _made("top-only", "nothing else in the top trie", source, [key], [there], top={}, child=name)
    twins = [_child(2_000, published("ab")), _child(2_001, published("ab"))]
    yield _made("twins", "two publishers with equal tries", source, [key], twins, child=name)
    for version in (0, 1):
        large = _child(2_000, published("ab", length=40))
        yield _made(
            f"version-{version}", f"state version {version}", source, [key], [large], child=name, version=version
        )
    other = _named(b"crowdloan", {b"x": b"1"})
    yield _made("other-kind", "a child trie that is no publisher's", source, [b"x"], [other, there], child=b"crowdloan")
    long = _named(name + b"\x00", published("a"))
    yield _made("longer-name", "a name that begins with the publisher's", source, [key], [long, there], child=name)


def _named(name: bytes, pairs: Pairs) -> ChildPairs:
    return ChildPairs(hexed(name), entries(pairs))


def _random_children(seed: int) -> Iterator[ProofVector]:
    for number in range(8):
        random = Random(f"child {seed} {number}")  # noqa: S311 - vectors, no secrets
        ids = random.sample(range(1_990, 2_010), 3)
        tries = {para_id: drawn_pairs(random, random.choice((1, 6))) for para_id in ids}
        chosen = ids[0]
        yield _made(
            f"random-{number}",
            f"three random child tries, number {number}",
            VectorSource(upstream="prove_child_read"),
            drawn_keys(random, tries[chosen]),
            [_child(para_id, pairs) for para_id, pairs in sorted(tries.items())],
            top=drawn_pairs(random, 5),
            child=derive_child_info(chosen).storage_key,
            version=number % 2,
        )


def _verified() -> Iterator[ProofVector]:
    name = derive_child_info(2_000).storage_key
    keys = [blake2_256(b"a"), blake2_256(b"missing")]
    made = _made("", "", _COLLECTED, keys, [_child(2_000, published("ab"))], child=name)
    db, root = state_of(made)
    nodes = list(StorageProof.generate_child(db, root, ChildInfo.new_default(name), keys))
    child_root = build_database(published("ab"), state_version=StateVersion.V1)[1]
    without_child = [node for node in nodes if blake2_256(node) != child_root]
    no_root = {CHILD_STORAGE_PREFIX + name: bytes(31)}
    short, short_root = build_database(no_root, state_version=StateVersion.V1)
    short_nodes = [data for node_hash in short if (data := short.get(node_hash)) is not None]
    absent = derive_child_info(2_001).storage_key
    cases = {
        "holds": ("a value and an absence", root, nodes, keys, name),
        "no-child": ("another publisher has no trie: all keys are absent", root, nodes, keys, absent),
        "no-keys": ("the way to the child's root is read for no keys, too", root, nodes, [], name),
        "child-root-missing": ("the root of the child trie is missing", root, without_child, keys, name),
        "child-root-unread": ("its node is not needed for no keys", root, without_child, [], name),
        "top-missing": ("the top trie is missing", root, [it for it in nodes if blake2_256(it) != root], keys, name),
        "no-root": ("the value under the child's key has 31 bytes", short_root, short_nodes, keys, name),
    }
    for label, (why, top_root, given, asked, child) in cases.items():
        for strict in (False, True):
            how = "strict" if strict else "tolerant"
            yield ProofVerification(
                id=f"proofs/child-verification/{label}-{how}",
                why=f"{why}, {how}",
                source=VectorSource(upstream="read_child_proof_check"),
                root=hexed(top_root),
                nodes=list(map(hexed, given)),
                keys=list(map(hexed, asked)),
                strict=strict,
                child=hexed(child),
            )
