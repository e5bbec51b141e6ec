"""E10: what expiry costs the relay chain, and how late it comes.

The relay chain looks for expired entries in the idle time of its blocks, up to a limit in each, whether any has
expired or not. Entries with random times to live fill its storage.
"""

from collections.abc import Sequence
from random import Random

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.simulations import mean, percentile
from relaycast_collator import ChainSimulator
from relaycast_collator.relay_chain import BLOCK_WEIGHT
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.broadcaster.events import KeyExpired
from relaycast_trie import blake2_256
from relaycast_xcm import ParaId, Weight

ENTRIES = (100, 500, 1_000, 2_000, 5_000, 10_000)
IDLE = (1.0, 0.1, 0.02)
"""Shares of a block's weight that are left for idle work."""

PUBLISHER = ParaId(1_000)
VALUE_BYTES = 16
SHORTEST, LONGEST = 10, 40
"""Blocks that entries live, drawn evenly."""

CONFIG = BroadcasterConfig(
    name="many keys",
    source="Polkadot's limits, with room for more keys of one publisher",
    max_stored_keys=max(ENTRIES),
    max_total_storage_size=1 << 31,
)


class Expiry(Row, frozen=True, kw_only=True):
    """A number of entries that will expire, and the idle time of each block."""

    entries: int
    idle_share: float
    scans_per_block: float
    """Means over the blocks before any entry expires."""

    ref_time_per_block: float
    block_share: float
    blocks_around: float
    """Until all entries have been looked at once."""

    expired: int
    mean_lateness: float
    p99_lateness: int
    most_lateness: int


def measure(scale: Scale) -> list[Expiry]:
    """Fill the storage, and let blocks pass until all is gone."""
    entries, idle = scale.pick(ENTRIES, ENTRIES[:4:3]), scale.pick(IDLE, IDLE[:1])
    return [_row(scale, count, share) for count in entries for share in idle if count <= 2_000 or share == IDLE[0]]


def _row(scale: Scale, entries: int, idle_share: float) -> Expiry:
    weight = Weight(round(BLOCK_WEIGHT.ref_time * idle_share), BLOCK_WEIGHT.proof_size)
    network = ChainSimulator(seed=scale.seed, broadcaster=CONFIG, block_weight=weight, window=2)
    chain, draw = network.relay_chain, Random(f"{scale.seed} {entries}")  # noqa: S311

    def fill() -> Weight:
        for index in range(entries):
            key, ttl = blake2_256(b"entry/%d" % index), draw.randint(SHORTEST, LONGEST)
            chain.broadcaster.handle_publish(PUBLISHER, key, bytes(VALUE_BYTES), ttl=ttl)
        return Weight.ZERO

    network.call(fill, declared=Weight.ZERO)
    idle: list[int] = []
    late: list[int] = []
    due = _fill_and_look(network, entries)
    began = chain.head.number
    while len(late) < entries:
        network.step()
        if chain.head.number < began + SHORTEST:
            idle.append(chain.system.meter.consumed.ref_time)
        late += [chain.head.number - due[it.key] for it in chain.head.events if isinstance(it, KeyExpired)]
    each = (CONFIG.weight("on_idle", n=1) - CONFIG.weight("on_idle")).ref_time
    scans = mean(round((spent - CONFIG.weight("on_idle").ref_time) / each) for spent in idle)
    return Expiry(
        entries=entries,
        idle_share=idle_share,
        scans_per_block=scans,
        ref_time_per_block=mean(idle),
        block_share=round(mean(idle) / BLOCK_WEIGHT.ref_time, 4),
        blocks_around=round(entries / scans, 1),
        expired=len(late),
        mean_lateness=mean(late, digits=2),
        p99_lateness=percentile(late, 99) or 0,
        most_lateness=max(late),
    )


def _fill_and_look(network: ChainSimulator, entries: int) -> dict[bytes, int]:
    """Let the block pass that fills the storage, and return when each key is due."""
    network.step()
    storage = network.relay_chain.broadcaster.storage
    due: dict[bytes, int] = {}
    for index in range(entries):
        key = blake2_256(b"entry/%d" % index)
        entry = storage.entry(PUBLISHER, key)
        assert entry is not None
        due[key] = entry.when_inserted + entry.ttl
    return due


def answer(rows: Sequence[Expiry]) -> str:
    """Say how late expiry is, and what looking for it takes."""
    ample = [row for row in rows if row.idle_share == IDLE[0]]
    late = max(ample, key=lambda row: row.entries)
    prompt = max((row.entries for row in ample if not row.most_lateness), default=0)
    share = max(row.block_share for row in ample)
    busy = [row for row in rows if row.idle_share != IDLE[0]]
    tight = max(busy, key=lambda row: row.mean_lateness) if busy else None
    scarce = ""
    if tight is not None:
        scarce = (
            f"; where a block has only {tight.idle_share:.0%} of its weight left, {tight.entries:,} entries are "
            f"removed {tight.mean_lateness:.1f} blocks late on average and {tight.most_lateness} at most"
        )
    return (
        f"Looking for expired entries takes up to {share:.1%} of every block's weight, and removes {late.entries:,} of "
        f"them {late.mean_lateness:.1f} blocks late on average, {late.most_lateness} at most; with "
        f"{POLKADOT.max_ttl_scans_per_idle} looks a block, none of up to {prompt:,} entries is late{scarce} (all "
        "weight of a block is left unless said; blocks pay for looks whether anything expires or not; placeholder "
        f"weight of {(CONFIG.weight('on_idle', n=1) - CONFIG.weight('on_idle')).ref_time / 1e6:.0f} us a look; entries "
        f"that live {SHORTEST} to {LONGEST} blocks, drawn evenly; readers are not told of what is removed)."
    )


def chart(rows: Sequence[Expiry]) -> Chart:
    """Draw lateness against entries."""
    marks = (("mean", "mean_lateness"), ("most", "most_lateness"))
    return Chart(
        title="How late entries are removed",
        mark="line",
        x=Axis(field="entries", title="entries that expire", log=True),
        y=Axis(field="late", title="blocks late"),
        colour=Axis(field="idle", title="weight left", names=True, order=tuple(f"{share:.0%}" for share in IDLE)),
        dash=Axis(field="mark", title="", names=True, order=("most", "mean")),
        points=[
            {"entries": row.entries, "late": getattr(row, field), "idle": f"{row.idle_share:.0%}", "mark": mark}
            for row in rows
            for mark, field in marks
        ],
    )


EXPERIMENT = Experiment(
    name="E10",
    slug="ttl",
    question="What does expiry cost, and how late does it come?",
    row=Expiry,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Looks go through all entries of all publishers in the order of hashes and begin anew at the end.",
        "The draft charges a look as if the entry were removed: two reads and four writes.",
        "A reader that wants to know whether a value has timed out has its time to live from the callback.",
    ),
)
