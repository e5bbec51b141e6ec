"""E14: what proofs of the same keys would take in other encodings and in another trie.

Compact proofs and state version 0 are those of the real codecs. The binary trie is counted, not built: a path's
siblings, 32 bytes each, a bit for each level to say where there is one, and the entries.
"""

from collections.abc import Sequence
from random import Random
from statistics import fmean

import numpy as np
import numpy.typing as npt

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.exact_tries import Keys, Prover, hashed_keys, prover
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.predict.closed_forms import entry_bytes
from relaycast_trie import StateVersion

KEYS = (100, 1_000, 10_000, 100_000)
READS = (1, 10, 100, 1_000)
VALUE_BYTES = (16, 384)
DRAWN = (1_000, 10_000)
"""Tries of which the chart tells."""

TRIALS = {1: 20, 10: 6}

PROOF, COMPACT, OLD, OLD_COMPACT, BINARY = ENCODINGS = (
    "storage proof, version 1",
    "compact, version 1",
    "storage proof, version 0",
    "compact, version 0",
    "binary trie",
)


class Encoded(Row, frozen=True, kw_only=True):
    """One encoding of proofs of ``read`` keys; bytes are means over ``trials`` draws."""

    encoding: str
    keys: int
    value_bytes: int
    read: int
    trials: int
    proof_bytes: float
    share: float
    """Of the storage proof in version 1, which is what RFC-0160 sends."""


def measure(scale: Scale) -> list[Encoded]:
    """Prove the same draws in every encoding."""
    rows: list[Encoded] = []
    for count in scale.pick(KEYS, KEYS[:3]):
        keys = hashed_keys(count, seed=scale.seed)
        for value_bytes in VALUE_BYTES:
            size = entry_bytes(value_bytes)
            values = np.tile(keys, (1, -(-size // 32)))[:, :size]
            tries = [prover(keys, values, state_version=version) for version in StateVersion]
            draw = Random(f"{scale.seed} {count}")  # noqa: S311
            for read in [read for read in READS if read <= count]:
                rows += _encodings(tries, keys, value_bytes, read, draw, scale)
    return rows


def _encodings(
    tries: list[Prover], keys: Keys, value_bytes: int, read: int, draw: Random, scale: Scale
) -> list[Encoded]:
    trials = scale.pick(TRIALS, {1: 10}).get(read, 2)
    found: dict[str, list[int]] = {name: [] for name in ENCODINGS}
    for _ in range(trials):
        places = np.array(sorted(draw.sample(range(len(keys)), read)))
        for trie, (plain, compact) in zip(tries, ((OLD, OLD_COMPACT), (PROOF, COMPACT)), strict=True):
            proof = trie.prove(keys[places])
            found[plain].append(proof.proof_bytes)
            found[compact].append(trie.compact(proof).proof_bytes)
        found[BINARY].append(binary_bytes(keys, places) + read * entry_bytes(value_bytes))
    whole = fmean(found[PROOF])
    return [
        Encoded(
            encoding=name,
            keys=len(keys),
            value_bytes=value_bytes,
            read=read,
            trials=trials,
            proof_bytes=round(fmean(sizes), 1),
            share=round(fmean(sizes) / whole, 4),
        )
        for name, sizes in found.items()
    ]


def binary_bytes(keys: Keys, places: npt.NDArray[np.int64]) -> int:
    """Return the bytes of a proof of some keys in a binary trie of all, without their values.

    A branch stands wherever keys part. Below one, a side with no proven key is a sibling of 32 bytes; a bit for each
    side of each branch on the way says which.
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
    return 32 * siblings + -(-2 * branches // 8)


def answer(rows: Sequence[Encoded]) -> str:
    """Say what other encodings would save."""
    count, size = 10_000, VALUE_BYTES[0]
    shares = {(row.encoding, row.read): row.share for row in rows if row.keys == count and row.value_bytes == size}
    compact, binary = (", ".join(f"{shares[name, read]:.0%}" for read in READS) for name in (COMPACT, BINARY))
    whole = next(
        row.proof_bytes
        for row in rows
        if (row.encoding, row.keys, row.value_bytes, row.read) == (PROOF, count, size, READS[0])
    )
    old = max(row.share for row in rows if row.encoding == OLD and row.value_bytes == VALUE_BYTES[1])
    lowest = min(row.share for row in rows if row.encoding == OLD)
    return (
        f"Compact proofs would take {compact} of the bytes for {', '.join(map(str, READS[:-1]))} and {READS[-1]:,} "
        f"keys of {count:,}, and a binary trie {binary}; state version 0 takes {lowest:.0%} to {old:.0%} (values of "
        f"{size} bytes, one key {whole:,.0f} bytes as a storage proof; for version 0 also of {VALUE_BYTES[1]}; keys "
        "drawn at random, child trie alone, nothing cached; the binary trie is counted: siblings of 32 bytes and a bit "
        "a side)."
    )


def chart(rows: Sequence[Encoded]) -> Chart:
    """Draw shares of the storage proof against the keys that are read."""
    return Chart(
        title="Proof bytes, of those of a storage proof in state version 1",
        mark="line",
        x=Axis(field="read", title="keys read", log=True),
        y=Axis(field="share", title="of the storage proof", percent=True),
        colour=Axis(field="encoding", title="", names=True, order=ENCODINGS),
        panel=Axis(
            field="case",
            title="",
            names=True,
            order=tuple(_case(count, size) for count in DRAWN for size in VALUE_BYTES),
        ),
        points=[
            {"read": row.read, "share": row.share, "encoding": row.encoding, "case": _case(row.keys, row.value_bytes)}
            for row in rows
            if row.keys in DRAWN
        ],
        width=160,
    )


def _case(keys: int, value_bytes: int) -> str:
    return f"{keys:,} keys of {value_bytes} B"


EXPERIMENT = Experiment(
    name="E14",
    slug="encodings",
    row=Encoded,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "A compact proof leaves out every hash that its reader can compute; pruning node by node, as RFC-0160 does, "
        "needs the nodes as they are, so that a collator would have to compact after it pruned.",
        "State version 0 keeps values in their nodes: no hash beside a value, but neighbours' values never come along, "
        "since a leaf's parent holds its hash.",
        "A proof of validity is compressed before it is sent; hashes do not compress, which is most of what is saved "
        "here.",
    ),
)
