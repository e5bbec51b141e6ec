"""E14: what proofs of the same keys would take in other encodings, in another trie, and under another hash function.

Compact proofs and state version 0 are those of the real codecs. The binary trie is counted, not built: a path's
siblings, 32 bytes each, a bit for each level to say where there is one, and the entries. Tries up to 10,000 keys are
built and proven with each hash function. What it changes is counted without a clock, by how often the compression
function runs for a reader who verifies the proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

import numpy as np
import numpy.typing as npt

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.exact_tries import Keys, Prover, hashed_keys, prover
from relaycast.predict.closed_forms import entry_bytes
from relaycast_trie import (
    BLAKE2B_256,
    BLAKE3_256,
    KECCAK_256,
    Hasher,
    MemoryDB,
    StateVersion,
    StorageProof,
    build_database,
)
from relaycast_trie.hasher import HASH_LENGTH

KEYS = (100, 1_000, 10_000, 100_000)
READS = (1, 10, 100, 1_000)
VALUE_BYTES = (16, 384)
DRAWN = (1_000, 10_000)
"""BuiltTries of which the chart tells."""

TRIALS = {1: 20, 10: 6}

PROOF, COMPACT, OLD, OLD_COMPACT, BINARY = ENCODINGS = (
    "storage proof, version 1",
    "compact, version 1",
    "storage proof, version 0",
    "compact, version 0",
    "binary trie",
)


MOST_REBUILT = 10_000
"""Keys of a trie up to which it is built and proven with each hash function."""

HASHERS = (BLAKE2B_256, KECCAK_256, BLAKE3_256)
LABELS = {KECCAK_256.name: "version 1 with Keccak-256", BLAKE3_256.name: "version 1 with BLAKE3"}
"""How the chart calls a storage proof under another hash function."""


class Encoded(Row, frozen=True, kw_only=True):
    """One encoding of proofs of ``read`` keys under one hash function; figures are means over ``trials`` draws."""

    encoding: str
    hasher: str
    keys: int
    value_bytes: int
    read: int
    trials: int
    proof_bytes: float
    share: float
    """Share of the bytes of the storage proof in version 1, which is what RFC-0160 sends."""

    messages: float
    """What a reader hashes to verify: nodes and values outside of them, or the binary trie's branches and leaves."""

    compressions: float
    """Calls of the hash function's compression function, or permutation, for these messages."""

    work: float
    """The same over those of the storage proof in version 1 under Blake2b-256."""


@dataclass(frozen=True, slots=True)
class WeighedProof:
    """One proof: its bytes, and the bytes of each message that its reader hashes."""

    proof_bytes: int
    messages: tuple[int, ...]


def measure(scale: Scale) -> list[Encoded]:
    """Prove the same draws in every encoding."""
    rows: list[Encoded] = []
    for count in scale.pick(KEYS, KEYS[:3]):
        keys = hashed_keys(count, seed=scale.seed)
        for value_bytes in VALUE_BYTES:
            size = entry_bytes(value_bytes)
            values = np.tile(keys, (1, -(-size // 32)))[:, :size]
            tries = BuiltTries.of(keys, values)
            draw = Random(f"{scale.seed} {count}")  # noqa: S311
            for read in [read for read in READS if read <= count]:
                trials = scale.pick(TRIALS, {1: 10}).get(read, 2)
                draws = [np.array(sorted(draw.sample(range(count), read))) for _ in range(trials)]
                rows += _rows([tries.measure(keys, places, size) for places in draws], keys, value_bytes, read)
    return rows


@dataclass(frozen=True, slots=True)
class BuiltTries:
    """The trie of some keys in both state versions, and in version 1 under other hash functions."""

    old: Prover
    new: Prover
    rehashed: tuple[tuple[Hasher, MemoryDB, bytes], ...]

    @classmethod
    def of(cls, keys: Keys, values: Keys) -> "BuiltTries":
        """Build the tries of ``keys`` with ``values``, a row each."""
        old, new = (prover(keys, values, state_version=version) for version in StateVersion)
        others = HASHERS[1:] if len(keys) <= MOST_REBUILT else ()
        pairs = {key.tobytes(): value.tobytes() for key, value in zip(keys, values, strict=True)} if others else {}
        rebuilt = ((it, *build_database(pairs, state_version=StateVersion.V1, hasher=it)) for it in others)
        return cls(old, new, tuple(rebuilt))

    def measure(self, keys: Keys, places: npt.NDArray[np.int64], entry_size: int) -> dict[str, WeighedProof]:
        """Prove the keys at ``places`` in every encoding.

        INVARIANT: another hash function changes hashes, not the bytes of any node.
        """
        found: dict[str, WeighedProof] = {}
        for trie, (plain, compact) in ((self.old, (OLD, OLD_COMPACT)), (self.new, (PROOF, COMPACT))):
            proof = trie.prove(keys[places])
            sizes = tuple(sorted(map(len, proof.nodes)))
            found[plain] = WeighedProof(sum(sizes), sizes)
            found[compact] = WeighedProof(trie.compact(proof).proof_bytes, sizes)
        for hasher, db, root in self.rehashed:
            asked = [key.tobytes() for key in keys[places]]
            proof = StorageProof.generate(db, root, asked, hasher=hasher)
            proof.verify(root, asked, strict=True, hasher=hasher)
            assert sorted(map(len, proof.nodes)) == list(found[PROOF].messages), f"{hasher.name} changes sizes"
        siblings, branches = binary_proof(keys, places)
        leaves = (HASH_LENGTH + entry_size,) * len(places)
        size = binary_bytes(siblings, branches) + len(places) * entry_size
        found[BINARY] = WeighedProof(size, (2 * HASH_LENGTH,) * branches + leaves)
        return found


def _rows(proofs: list[dict[str, WeighedProof]], keys: Keys, value_bytes: int, read: int) -> list[Encoded]:
    whole = fmean(it[PROOF].proof_bytes for it in proofs)
    usual = fmean(_compressions(it[PROOF], BLAKE2B_256) for it in proofs)
    return [
        Encoded(
            encoding=name,
            hasher=hasher.name,
            keys=len(keys),
            value_bytes=value_bytes,
            read=read,
            trials=len(proofs),
            proof_bytes=round(size := fmean(it[name].proof_bytes for it in proofs), 1),
            share=round(size / whole, 4),
            messages=round(fmean(len(it[name].messages) for it in proofs), 1),
            compressions=round(calls := fmean(_compressions(it[name], hasher) for it in proofs), 1),
            work=round(calls / usual, 4),
        )
        for name in ENCODINGS
        for hasher in HASHERS
    ]


def _compressions(proof: WeighedProof, hasher: Hasher) -> int:
    return sum(map(hasher.compressions, proof.messages))


def binary_bytes(siblings: int, branches: int) -> int:
    """Return the bytes of a binary proof without its entries: siblings, and a bit for each side of each branch."""
    return HASH_LENGTH * siblings + -(-2 * branches // 8)


def binary_proof(keys: Keys, places: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return how many siblings and branches a proof of some keys has in a binary trie of all.

    A branch stands wherever keys part. Below one, a side with no proven key is a sibling.
    """
    heads = np.ascontiguousarray(keys[:, :8]).view(">u8").reshape(-1).astype(np.uint64)
    order = np.argsort(heads, kind="stable")
    wanted = np.zeros(len(keys), np.int64)
    wanted[places] = 1
    heads, wanted = heads[order], np.concatenate(([0], np.cumsum(wanted[order])))
    siblings = branches = 0
    for bits in range(64):
        above = heads >> np.uint64(64 - bits) if bits else np.zeros_like(heads)
        starts = np.flatnonzero(np.concatenate(([True], above[1:] != above[:-1])))
        ends = np.append(starts[1:], len(heads))
        if len(starts) == len(heads):
            break
        right = (heads >> np.uint64(63 - bits)) & np.uint64(1)
        rights = np.concatenate(([0], np.cumsum(right.astype(np.int64))))
        middles = ends - (rights[ends] - rights[starts])
        parted = (middles > starts) & (middles < ends)
        left_wanted = wanted[middles] - wanted[starts] > 0
        right_wanted = wanted[ends] - wanted[middles] > 0
        siblings += int((parted & (left_wanted != right_wanted)).sum())
        branches += int((parted & (left_wanted | right_wanted)).sum())
    return siblings, branches


def answer(rows: Sequence[Encoded]) -> str:
    """Say what other encodings would save, and what another hash function would change."""
    count, size = 10_000, VALUE_BYTES[0]
    chosen = {(it.encoding, it.read, it.hasher): it for it in rows if it.keys == count and it.value_bytes == size}
    usual, least, most = BLAKE2B_256.name, READS[0], READS[-1]
    compact, binary = ([chosen[name, read, usual].share for read in (least, most)] for name in (COMPACT, BINARY))
    one, parted = chosen[PROOF, least, usual], chosen[BINARY, least, usual]
    old = [row.share for row in rows if row.encoding == OLD and row.value_bytes == VALUE_BYTES[1]]
    blake2b, keccak, blake3 = (chosen[PROOF, least, it.name].compressions for it in HASHERS)
    return (
        f"Compact proofs would take {compact[0]:.0%} of the bytes for one key of {count:,} and {compact[1]:.0%} for "
        f"{most:,}, and a binary trie {binary[0]:.0%} and {binary[1]:.0%}; with values of {VALUE_BYTES[1]} bytes, "
        f"state version 0 takes {min(old):.0%} to {max(old):.0%} of them; another hash function changes no size; to "
        f"verify one key is to hash {one.messages:.1f} messages, in {blake2b:.1f} blocks of 128 bytes for Blake2b-256, "
        f"{keccak:.1f} of 136 for Keccak-256 and {blake3:.1f} of 64 for BLAKE3; in a binary trie it is to hash "
        f"{parted.messages:.1f} messages in {parted.compressions:.1f} blocks of Blake2b-256 (values of {size} bytes "
        f"unless said; one key takes {one.proof_bytes:,.0f} bytes as a storage proof; keys drawn at random, child trie "
        "alone, nothing cached; the binary trie is counted: siblings of 32 bytes and a bit a side)."
    )


def chart(rows: Sequence[Encoded]) -> Chart:
    """Draw shares of the storage proof against the keys that are read: of its bytes, then of the blocks it hashes."""
    sizes = [row for row in rows if row.keys in DRAWN and row.hasher == BLAKE2B_256.name]
    hashed = [row for row in rows if row.keys == DRAWN[-1] and row.value_bytes == VALUE_BYTES[0]]
    points: list[dict[str, object]] = [
        {"read": row.read, "share": row.share, "encoding": row.encoding, "case": _case(row.keys, row.value_bytes)}
        for row in sizes
    ]
    for row in hashed:
        label = LABELS.get(row.hasher, row.encoding)
        if row.encoding == PROOF or (row.encoding == BINARY and row.hasher == BLAKE2B_256.name):
            points.append({"read": row.read, "share": row.work, "encoding": label, "case": HASHING})
    return Chart(
        title="Proof bytes and hashed blocks, of those of a storage proof in state version 1",
        mark="line",
        x=Axis(field="read", title="keys read", log=True),
        y=Axis(field="share", title="of the storage proof", percent=True),
        colour=Axis(field="encoding", title="", names=True, order=(*ENCODINGS, *LABELS.values())),
        panel=Axis(
            field="case",
            title="",
            names=True,
            order=(*(_case(count, size) for count in DRAWN for size in VALUE_BYTES), HASHING),
        ),
        points=points,
        width=160,
    )


def _case(keys: int, value_bytes: int) -> str:
    return f"{keys:,} keys of {value_bytes} B"


HASHING = f"blocks hashed, {_case(DRAWN[-1], VALUE_BYTES[0])}"
"""The panel of hash functions: a binary trie stands there under Blake2b-256."""


EXPERIMENT = Experiment(
    name="E14",
    slug="encodings",
    question="What would other encodings save?",
    row=Encoded,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "A compact proof leaves out every hash that its reader can compute. Pruning node by node, as RFC-0160 does, "
        "needs the nodes as they are, so a collator would have to compact after it pruned.",
        "State version 0 keeps values in their nodes: no hash beside a value, but neighbours' values never come along, "
        "since a leaf's parent holds its hash.",
        "Another hash function changes no byte count: a hash has 32 bytes under each, and a node stands inside its "
        "parent where it is shorter. What changes is how nodes fill the function's blocks. A block has 128 bytes for "
        "Blake2b, and 136 for Keccak, of which at least one is padding. It has 64 for BLAKE3, and one more block joins "
        "two chunks of 1,024 bytes. "
        "Blocks are no measure of time across functions, which differ in rounds and word size.",
        "A binary trie is taken to hash 64 bytes for a branch, and the key and the entry for a leaf.",
        "A proof of validity is compressed before it is sent; hashes do not compress, which is most of what is saved "
        "here.",
    ),
)
