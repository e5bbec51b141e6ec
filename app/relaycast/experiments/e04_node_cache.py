"""E4: what the node cache saves in relay proof, against what the parachain's own proof of it costs.

The same changes are read with the cache and without it. A block's proof of validity carries both: nodes of the relay
chain's state, and nodes of the parachain's own state, in which the cache is kept.
"""

from collections.abc import Iterator, Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import Feeds
from relaycast.experiments.ground.simulations import crossing, mean
from relaycast.predict.closed_forms import cache_upkeep_bytes, delta_proof
from relaycast.scenario.policy_choice import PolicyTable

SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the keys read that are new in every block."""

READERS = (
    (50, 50, 16, 0),
    (200, 200, 16, 0),
    (1_000, 200, 16, 0),
    (200, 200, 16, 5_000),
    (200, 200, 384, 0),
)
"""Keys published, keys read, bytes of a value, and entries of the parachain's own that are not pub-sub's."""

QUICK_READERS = READERS[:1]


class NodeCaching(Row, frozen=True, kw_only=True):
    """One pace of changes, with the cache and without; bytes a block, means over ``blocks``."""

    keys: int
    read: int
    value_bytes: int
    other_entries: int
    changed: int
    blocks: int
    relay_bytes: float
    own_bytes: float
    relay_bytes_uncached: float
    own_bytes_uncached: float
    callbacks: float
    callbacks_uncached: float
    formula_relay_bytes: float
    """What the closed form for deltas says of ``relay_bytes``; the way there in the top trie is not in it."""

    formula_own_bytes: float
    """What the closed form says of the cache's upkeep, which is most of ``own_bytes``."""

    net_saving: float
    """What the cache takes off both proofs together; below 0 it costs more than it saves."""


def measure(scale: Scale) -> list[NodeCaching]:
    """Run every reader at every pace."""
    readers = scale.pick(READERS, QUICK_READERS)
    return [row for reader in readers for row in _paces(scale, *reader)]


def _paces(scale: Scale, keys: int, read: int, value_bytes: int, other_entries: int) -> Iterator[NodeCaching]:
    blocks = scale.pick(8, 4)
    for changed in sorted({max(1, round(share * read)) for share in SHARES}):
        means: list[float] = []
        for cache in ("structure", "none"):
            feeds = Feeds.settled(
                keys=keys,
                read=read,
                value_bytes=value_bytes,
                seed=scale.seed,
                policies=PolicyTable(cache=cache),
                other_entries=other_entries,
            )
            records = feeds.blocks(blocks, changed=changed)
            means.append(mean(record.proof_bytes - record.static_bytes for record in records))
            means.append(mean(record.pov.own_bytes for record in records if record.pov is not None))
            means.append(mean(len(record.deliveries) for record in records))
        relay, own, callbacks, relay_uncached, own_uncached, callbacks_uncached = means
        yield NodeCaching(
            keys=keys,
            read=read,
            value_bytes=value_bytes,
            other_entries=other_entries,
            changed=changed,
            blocks=blocks,
            relay_bytes=relay,
            own_bytes=own,
            relay_bytes_uncached=relay_uncached,
            own_bytes_uncached=own_uncached,
            callbacks=callbacks,
            callbacks_uncached=callbacks_uncached,
            formula_relay_bytes=delta_proof(keys, read, changed, value_bytes).proof_bytes,
            formula_own_bytes=cache_upkeep_bytes(keys, read, changed, value_bytes),
            net_saving=round(relay_uncached + own_uncached - relay - own, 1),
        )


def break_even(rows: Sequence[NodeCaching]) -> dict[str, float | None]:
    """Return the share of keys changed in a block at which the cache stops paying, by reader."""
    readers: dict[str, list[NodeCaching]] = {}
    for row in rows:
        readers.setdefault(named(row), []).append(row)
    return {
        name: crossing([(row.changed / row.read, row.net_saving) for row in paces]) for name, paces in readers.items()
    }


def named(row: NodeCaching) -> str:
    """Return what a reader is called."""
    others = f", {row.other_entries:,} other entries" if row.other_entries else ""
    return f"{row.read:,} of {row.keys:,} keys of {row.value_bytes} B{others}"


def answer(rows: Sequence[NodeCaching]) -> str:
    """Say where the cache stops paying."""
    readers = {named(row): row for row in rows}
    shares = [(readers[name], share) for name, share in break_even(rows).items() if share is not None]
    short = [(row, share) for row, share in shares if row.value_bytes == readers[named(rows[0])].value_bytes]
    long = [(row, share) for row, share in shares if row.value_bytes != short[0][0].value_bytes]
    least, most = min(share for _, share in short), max(share for _, share in short)
    bounds = f"{least:.1%}" if len(short) == 1 else f"{least:.1%} to {most:.1%}"
    longer = "".join(f", or {share:.1%} with values of {row.value_bytes} bytes" for row, share in long)
    of = f"{short[0][0].value_bytes} bytes"
    each = ", ".join(f"{share:.1%} for {_counted(row, at)}" for at, (row, share) in enumerate(short))
    each = f"; with {of}: {each}" if len(short) > 1 else ""
    whole = next(row for row in rows if row.changed == row.read)
    return (
        f"The cache stops paying when more than {bounds} of the subscribed keys with values of {of} change in each "
        f"block{longer}{each}; where all {whole.read} keys change in each block, the cache adds "
        f"{-whole.net_saving:,.0f} bytes to the {whole.relay_bytes_uncached + whole.own_bytes_uncached:,.0f} without "
        "it (bytes of both proofs together, uncompressed; without a cache every subscribed key is proven and told "
        "again whenever one changes)."
    )


def _counted(row: NodeCaching, at: int) -> str:
    others = f" beside {row.other_entries:,} other entries" if row.other_entries else ""
    return f"{row.read:,} of {row.keys:,}{others if at else ' keys' + others}"


def chart(rows: Sequence[NodeCaching]) -> Chart:
    """Draw what the cache takes off, as a share of what a block carries without it."""
    names = tuple(dict.fromkeys(map(named, rows)))
    return Chart(
        title="What the node cache takes off a block's proofs",
        mark="line",
        x=Axis(field="share", title="subscribed keys that change in a block", log=True, percent=True),
        y=Axis(field="saved", title="saved of relay and own proof", percent=True),
        colour=Axis(field="reader", title="reader", names=True, order=names),
        points=[
            {
                "share": row.changed / row.read,
                "saved": round(row.net_saving / (row.relay_bytes_uncached + row.own_bytes_uncached), 4),
                "reader": named(row),
            }
            for row in rows
        ],
        rules=((0, ""),),
    )


EXPERIMENT = Experiment(
    name="E4",
    slug="node-cache",
    question="Does the node cache pay for its own place in the block?",
    row=NodeCaching,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Own bytes are nodes of the parachain's state as the compact proof that a block carries: reading and rewriting "
        "the cache, the roots and the digests of subscriptions needs them. The handler of the simulation keeps its "
        "values outside of the state.",
        "Static relay keys are left out: both designs carry them.",
        "The meter charges cached nodes against the relay budget too, see E15.",
    ),
    first_cut=(
        "Expected: near 10 % of small keys. Measured: 9 to 10 % where all keys of a publisher are read, 15 % where a "
        "fifth of them is, and almost two thirds where values are long. A block that replaces a cached node carries "
        "the paths to the old and to the new one in the parachain's own trie. With small values that is two to four "
        "times what the change takes of the relay proof."
    ),
)
