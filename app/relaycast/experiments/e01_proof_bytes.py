"""E1: proof bytes against the keys of a publisher, the keys that are read, and the length of values.

Exact child tries up to a million keys. What comes on top in a block is named in the notes.
"""

from collections.abc import Sequence
from math import log10
from random import Random
from statistics import fmean

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.exact_tries import ExactTrie, hashed_keys
from relaycast.predict.closed_forms import entry_bytes, full_proof

KEYS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
VALUE_BYTES = (16, 384, 2_048)
"""An oracle's price, a ring root, and the longest value there may be."""

TRIALS = {1: 400, 10: 60, 100: 20, 1_000: 5}
"""Number of random draws of subscribed keys; their mean counts. All keys of a trie can be drawn in one way only."""


class ProofBytes(Row, frozen=True, kw_only=True):
    """One trie and a number of keys read from it; bytes are means over ``trials`` draws."""

    keys: int
    value_bytes: int
    read: int
    trials: int
    nodes: float
    node_bytes: float
    external_value_bytes: int
    proof_bytes: float
    least_bytes: int
    most_bytes: int
    bytes_per_read_key: float
    formula_bytes: float
    """What ``relaycast predict`` says."""


def measure(scale: Scale) -> list[ProofBytes]:
    """Build a trie of each size, inline and external, and prove draws from it."""
    rows: list[ProofBytes] = []
    for count in scale.pick(KEYS, KEYS[:4]):
        keys = hashed_keys(count, seed=scale.seed)
        for value_bytes in VALUE_BYTES:
            trie = ExactTrie(keys, entry_bytes=entry_bytes(value_bytes))
            draw = Random(f"{scale.seed} {count}")  # noqa: S311 - to be drawn again
            reads = [10**power for power in range(7) if 10**power <= count]
            rows += [_row(trie, value_bytes, read, draw, scale) for read in reads]
    return rows


def _row(trie: ExactTrie, value_bytes: int, read: int, draw: Random, scale: Scale) -> ProofBytes:
    trials = 1 if read == len(trie.keys) else scale.pick(TRIALS, {1: 50, 10: 10}).get(read, 1)
    sizes = [trie.proof_size(trie.draw(read, draw)) for _ in range(trials)]
    mean = fmean(size.proof_bytes for size in sizes)
    return ProofBytes(
        keys=len(trie.keys),
        value_bytes=value_bytes,
        read=read,
        trials=trials,
        nodes=round(fmean(size.nodes for size in sizes), 2),
        node_bytes=round(fmean(size.node_bytes for size in sizes), 1),
        external_value_bytes=sizes[0].value_bytes,
        proof_bytes=round(mean, 1),
        least_bytes=min(size.proof_bytes for size in sizes),
        most_bytes=max(size.proof_bytes for size in sizes),
        bytes_per_read_key=round(mean / read, 1),
        formula_bytes=full_proof(len(trie.keys), read, value_bytes).proof_bytes,
    )


def answer(rows: Sequence[ProofBytes]) -> str:
    """Say what one key costs, and what all cost."""
    small = {row.keys: row for row in rows if row.value_bytes == VALUE_BYTES[0] and row.read == 1}
    fewest, most = small[min(small)], small[max(small)]
    whole = next(row for row in rows if row.value_bytes == VALUE_BYTES[0] and row.read == row.keys == most.keys)
    long = next(row for row in rows if row.value_bytes != VALUE_BYTES[0] and row.read == 1 and row.keys == most.keys)
    outside = long.node_bytes - most.node_bytes
    tenfold = (most.proof_bytes - fewest.proof_bytes) / log10(most.keys / fewest.keys)
    off = max(abs(row.formula_bytes / row.proof_bytes - 1) for row in rows)
    return (
        f"To prove one value of {VALUE_BYTES[0]} bytes takes {fewest.proof_bytes / 1_000:.2f} kB out of {fewest.keys} "
        f"keys and {most.proof_bytes / 1_000:.2f} kB out of {most.keys:,}, about {round(tenfold, -1):.0f} bytes more "
        f"with every tenfold; read all together, each of {most.keys:,} keys takes {whole.bytes_per_read_key:.0f} bytes "
        "(means over draws of hashed keys; child trie alone, state version 1, uncompressed, nothing cached; closed "
        f"form within {off:.1%}; a value of 24 bytes or more stands outside of its node and adds its entry and "
        f"{outside:.0f} bytes)."
    )


def chart(rows: Sequence[ProofBytes]) -> Chart:
    """Draw bytes per key read against the keys of the trie, measured and by the closed form."""
    return Chart(
        title="Proof bytes per key read",
        mark="line",
        x=Axis(field="keys", title="keys of the publisher", log=True),
        y=Axis(field="bytes_per_read_key", title="proof bytes per key read", log=True),
        colour=Axis(field="read_keys", title="keys read", names=True, order=tuple(f"{10**n:,}" for n in range(7))),
        dash=Axis(field="source", title="", names=True, order=("measured", "closed form")),
        panel=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        points=[
            {
                "keys": row.keys,
                "bytes_per_read_key": round(proof_bytes / row.read, 1),
                "read_keys": f"{row.read:,}",
                "value": f"{row.value_bytes:,}",
                "source": source,
            }
            for row in rows
            for source, proof_bytes in (("measured", row.proof_bytes), ("closed form", row.formula_bytes))
        ],
        width=230,
    )


FIRST_CUT = "Expected: 0.8, 1.3 and 1.75 kB for one key of 100, 1,000 and 10,000. Confirmed within 3 %."

EXPERIMENT = Experiment(
    name="E1",
    slug="proof-bytes",
    question="How many proof bytes does a key cost?",
    row=ProofBytes,
    measure=measure,
    answer=answer,
    chart=chart,
    first_cut=FIRST_CUT,
    notes=(
        "The way to the publisher in the relay chain's top trie comes on top: once per publisher and block.",
        "Bytes are those of nodes and external values, without the length that SCALE puts before each of them.",
        "A relay chain that limits publishers to 4,000 keys and 2 MiB, as the draft's plan does, has no larger tries.",
    ),
)
