"""E9: how deep tries are by nature, how few crafted keys break a limit of depth, and what that costs whom.

The attack is ``relaycast attack depth``. Depth counts nodes that have a hash, from the child root to the leaf.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from relaycast.attacks import depth
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.exact_tries import Keys, hashed_keys

KEYS = (100, 1_000, 4_000, 10_000, 100_000, 1_000_000)
LIMITS = (8, 12, 16, 24, 32)
BLOCKS = 12
NATURAL, CRAFTED = "hashed keys", "crafted keys"


class Depth(Row, frozen=True, kw_only=True):
    """A trie of hashed keys with its depths, or an attack on a limit with what came of it."""

    kind: str
    keys: int
    limit: int | None = None
    mean_depth: float | None = None
    deepest: int
    deeper_than_8: int | None = None
    hashes_to_grind: float | None = None
    """Where keys are hashes of names: names to try for a path as deep as the limit, on average."""

    disabled_after_blocks: int | None = None
    proof_bytes_when_disabled: int | None = None
    others_harmed: bool | None = None


def measure(scale: Scale) -> list[Depth]:
    """Measure natural depths, and attack every limit."""
    sizes, limits = scale.pick(KEYS, KEYS[:3]), scale.pick(LIMITS, LIMITS[:3:2])
    return [_natural(hashed_keys(count, seed=scale.seed)) for count in sizes] + [
        _attacked(limit, scale.seed) for limit in limits
    ]


def _natural(keys: Keys) -> Depth:
    depths = depths_of(keys)
    return Depth(
        kind=NATURAL,
        keys=len(keys),
        mean_depth=round(float(depths.mean()), 3),
        deepest=int(depths.max()),
        deeper_than_8=int((depths > 8).sum()),
    )


def depths_of(keys: Keys) -> npt.NDArray[np.int64]:
    """Return the nodes on the path of every key, in the order of the keys; they part within sixteen nibbles.

    A branch stands at a prefix where keys go on in different ways.
    """
    heads = np.sort(np.ascontiguousarray(keys[:, :8]).view(">u8").reshape(-1).astype(np.uint64))
    assert len(np.unique(heads)) == len(heads), "keys that part later than sixteen nibbles"
    depths = np.ones(len(heads), np.int64)
    for nibbles in range(16):
        above = heads >> np.uint64(64 - 4 * nibbles) if nibbles else np.zeros_like(heads)
        below = heads >> np.uint64(60 - 4 * nibbles)
        starts = np.flatnonzero(np.concatenate(([True], above[1:] != above[:-1])))
        ways = np.concatenate(([0], np.cumsum(below[1:] != below[:-1])))
        ends = np.append(starts[1:], len(heads))
        parted = ways[ends - 1] > ways[starts]
        depths += np.repeat(parted, ends - starts)
    return depths


def _attacked(limit: int, seed: int) -> Depth:
    report = depth(limit=limit, blocks=BLOCKS, seed=seed)
    assert not report.violations, report.violations[0]
    return Depth(
        kind=CRAFTED,
        keys=report.crafted_keys + 1,
        limit=limit,
        deepest=report.path_nodes_after,
        hashes_to_grind=float(sum(16**shared for shared in range(limit))),
        disabled_after_blocks=None if report.disabled_at is None else report.disabled_at - report.struck_at,
        proof_bytes_when_disabled=report.proof_bytes_when_disabled,
        others_harmed=report.harmed,
    )


def answer(rows: Sequence[Depth]) -> str:
    """Say how deep tries are, and how cheap depth is."""
    natural = [row for row in rows if row.kind == NATURAL]
    attacks = {row.limit: row for row in rows if row.kind == CRAFTED}
    broken = [row.disabled_after_blocks for row in attacks.values() if row.disabled_after_blocks is not None]
    fewest, most, low, high = natural[0], natural[-1], attacks[8], attacks[16]
    harmed = sum(bool(row.others_harmed) for row in attacks.values())
    between = ", ".join(f"{row.mean_depth:.1f} ({row.deepest}) of {row.keys:,}" for row in natural[1:-1])
    assert low.hashes_to_grind is not None
    assert high.hashes_to_grind is not None
    return (
        f"Hashed keys lie {fewest.mean_depth:.1f} nodes deep on average out of {fewest.keys:,} and "
        f"{most.mean_depth:.1f} out of {most.keys:,}, the deepest {fewest.deepest} and {most.deepest}; between these "
        f"it is on average (at most) {between}; yet {low.keys - 1} crafted keys beside a subscribed one break a limit "
        f"of 8 nodes, and {high.keys - 1} one of 16; in {len(broken)} of {len(attacks)} attacks the publisher of such "
        f"keys is disabled, at most {max(broken)} blocks after the last is sent; others are harmed in {harmed} of them "
        f"(keys of the publisher's own choice; where keys are hashes of names, {low.hashes_to_grind:.1e} names must be "
        f"tried for 8, minutes on one core, and {high.hashes_to_grind:.1e} for 16)."
    )


def chart(rows: Sequence[Depth]) -> Chart:
    """Draw depth against keys, hashed and crafted."""
    return Chart(
        title="Depth of tries from hashed and from crafted keys",
        mark="line",
        x=Axis(field="keys", title="keys of the publisher", log=True),
        y=Axis(field="depth", title="nodes on a path"),
        colour=Axis(field="which", title="", names=True, order=tuple(_WHICH)),
        points=[{"keys": row.keys, "depth": deep, "which": which} for row in rows for which, deep in _depths(row)],
        rules=((8, "a limit of 8"), (16, "the default limit of 16")),
    )


_WHICH = ("hashed keys, mean", "hashed keys, deepest", "crafted keys, deepest")


def _depths(row: Depth) -> Iterator[tuple[str, float]]:
    if row.kind == CRAFTED:
        yield _WHICH[2], row.deepest
    elif row.mean_depth is not None:
        yield _WHICH[0], row.mean_depth
        yield _WHICH[1], row.deepest


EXPERIMENT = Experiment(
    name="E9",
    slug="depth",
    question="How deep are tries, and how cheaply are they made deeper?",
    row=Depth,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Each crafted key shares one nibble more with the victim's path than the one before; honest keys beside them "
        "make some of them unnecessary.",
        "Names to try are computed: 16 to the number of nibbles that the hash of each name must share, summed up.",
    ),
    first_cut=(
        "Expected: 3 to 6 nodes by nature, and eight crafted keys against a limit of 8. Confirmed up to 100,000 keys, "
        "of which the deepest already have 8; at a million some have 9, so that a limit of 8 would fail without an "
        "attack."
    ),
)
