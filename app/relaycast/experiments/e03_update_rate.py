"""E3: how many updates a block can last, and who is the first to be full: the sender, the relay chain, or the reader.

One publisher and one reader, and a relay chain with as many publishers as fill its blocks. What a reader could take
from more publishers is reckoned from what one of them takes.
"""

from collections.abc import Iterable, Sequence
from math import floor

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import PUBLISHER, UPSTREAM_A_BLOCK, Feeds
from relaycast.experiments.ground.simulations import mean, percentile
from relaycast.network import Network
from relaycast.scenario.workload import value_of
from relaycast_collator.relay_chain import BLOCK_WEIGHT
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES
from relaycast_xcm import ParaId

KEYS = 1_000
VALUE_BYTES = (16, 384, 2_048)
UPDATES = (1, 16, 256, 320)
FLOODING = 14
"""Publishers that send all they may: more than a relay block has weight for."""

BLOCK_SECONDS = 6
ALLOWED_BYTES = MAX_POV_BYTES * 85 // 100

READER, RELAY = "one publisher and its reader", "a relay chain full of publishers"


class UpdateRate(Row, frozen=True, kw_only=True):
    """Publishers that update ``updates`` keys each in every block, and what becomes of that."""

    kind: str
    publishers: int
    keys: int
    value_bytes: int
    updates: int
    blocks: int
    applied_per_block: float
    waiting_at_the_end: int
    """Publications that no block could send or execute."""

    p99_latency_blocks: int | None = None
    metered_bytes_per_update: float | None = None
    relay_bytes_per_update: float | None = None
    own_bytes_per_update: float | None = None
    meter_fits: int | None = None
    """Updates a block until 85 % of 10 MiB are metered."""

    pov_fits: int | None = None
    """Updates a block until relay and own proof together take as much."""


def measure(scale: Scale) -> list[UpdateRate]:
    """Let publishers send more and more."""
    sizes, paces = scale.pick(VALUE_BYTES, VALUE_BYTES[:1]), scale.pick(UPDATES, (16, 256, 320))
    rows = [_read(scale, value_bytes, updates) for value_bytes in sizes for updates in paces]
    return [*rows, _flooded(scale)]


def _read(scale: Scale, value_bytes: int, updates: int) -> UpdateRate:
    blocks, keys = scale.pick(4, 3), scale.pick(KEYS, 300)
    feeds = Feeds.settled(keys=keys, read=keys, value_bytes=value_bytes, seed=scale.seed)
    records = feeds.blocks(blocks, changed=updates)
    told = sum(len(record.deliveries) for record in records)
    metered, relay, own = (
        sum(sizes) / told
        for sizes in (
            [record.consumed.proof_size for record in records],
            [record.proof_bytes - record.static_bytes for record in records],
            [record.own_bytes for record in records],
        )
    )
    chains = feeds.network.chains
    return UpdateRate(
        kind=READER,
        publishers=1,
        keys=keys,
        value_bytes=value_bytes,
        updates=updates,
        blocks=blocks,
        applied_per_block=mean(len(record.deliveries) for record in records),
        waiting_at_the_end=len(chains.parachains[ParaId(PUBLISHER)].outbox),
        p99_latency_blocks=percentile((it.latency_blocks for record in records for it in record.deliveries), 99),
        metered_bytes_per_update=round(metered, 1),
        relay_bytes_per_update=round(relay, 1),
        own_bytes_per_update=round(own, 1),
        meter_fits=int(ALLOWED_BYTES / metered),
        pov_fits=int(ALLOWED_BYTES / (relay + own)),
    )


def _flooded(scale: Scale) -> UpdateRate:
    """Let many publishers send all they may, with nobody reading."""
    network, blocks = Network(seed=scale.seed), scale.pick(4, 2)
    publishers = [network.publisher(PUBLISHER + index) for index in range(FLOODING)]
    applied: list[int] = []
    for block in range(blocks + 2):
        for publisher in publishers:
            for index in range(UPSTREAM_A_BLOCK):
                value = value_of(scale.seed, publisher.para_id, index, block, VALUE_BYTES[0])
                publisher.publish(f"key/{index}", value)
        network.ledger.step()
        events = network.chains.relay_chain.head.events
        applied.append(sum(isinstance(event, DataPublished) for event in events))
    return UpdateRate(
        kind=RELAY,
        publishers=FLOODING,
        keys=UPSTREAM_A_BLOCK,
        value_bytes=VALUE_BYTES[0],
        updates=UPSTREAM_A_BLOCK,
        blocks=blocks,
        applied_per_block=mean(applied[2:]),
        waiting_at_the_end=FLOODING * UPSTREAM_A_BLOCK * (blocks + 2) - sum(applied),
    )


def answer(rows: Sequence[UpdateRate]) -> str:
    """Say who is full first."""
    readers = [row for row in rows if row.kind == READER]
    kept_up = max(row.updates for row in readers if row.waiting_at_the_end == 0)
    behind = next(row for row in readers if row.waiting_at_the_end)
    relay = next(row for row in rows if row.kind == RELAY)
    full = [row for row in readers if row.updates == kept_up]
    fits = _listed(
        f"{row.pov_fits:,}{'' if at else ' updates'} of {row.value_bytes:,} bytes" for at, row in enumerate(full)
    )
    metered = _listed(f"{row.meter_fits:,}" for row in full)
    weight, whole = POLKADOT.weight("publish").ref_time / 1e6, BLOCK_WEIGHT.ref_time / 1e12
    tight = min(row.pov_fits or 0 for row in full) / relay.applied_per_block
    return (
        f"A publisher keeps up {kept_up} updates a block, {kept_up / BLOCK_SECONDS:.0f} a second in blocks of "
        f"{BLOCK_SECONDS} s, because it may send no more than 16 upward messages of 16 instructions; with "
        f"{behind.updates} updates a block it falls behind; the relay chain keeps up {relay.applied_per_block:,.0f} "
        f"updates a block from all publishers together, at {weight:.0f} us each of a block's {whole:g} s; a reader "
        f"whose proofs may take 85 % of 10 MiB has room for {fits}; that is at least {floor(100 * tight) / 100:.2f} "
        f"times what the relay chain can apply; by what the meter charges, the reader has room for {metered} "
        f"(publishers of {full[0].keys:,} keys, {kept_up} of them new in every block, cache on; the weight of an "
        "update is a placeholder; the reader's room is reckoned from one such publisher)."
    )


def _listed(parts: Iterable[str]) -> str:
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def chart(rows: Sequence[UpdateRate]) -> Chart:
    """Draw what an update takes, by how many come at once."""
    parts = (
        ("metered", "metered_bytes_per_update"),
        ("relay proof", "relay_bytes_per_update"),
        ("own proof", "own_bytes_per_update"),
    )
    return Chart(
        title="What an update takes of a reader's block",
        mark="line",
        x=Axis(field="updates", title="updates in every block", log=True),
        y=Axis(field="bytes", title="bytes per update", log=True),
        colour=Axis(field="part", title="", names=True, order=tuple(name for name, _ in parts)),
        panel=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        points=[
            {"updates": row.updates, "bytes": getattr(row, field), "part": name, "value": f"{row.value_bytes:,}"}
            for row in rows
            if row.kind == READER
            for name, field in parts
        ],
        width=230,
    )


EXPERIMENT = Experiment(
    name="E3",
    slug="update-rate",
    question="How many updates can be kept up?",
    row=UpdateRate,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Upward limits are those of Polkadot's host configuration, the barrier takes 16 Publish instructions a "
        "message.",
        "The weight of Publish is the draft's placeholder with its database accesses counted; nobody has benchmarked "
        "it.",
        "The meter charges nodes of the relay proof and of the cache; what rewriting the cache takes of the block's "
        "own proof it does not see.",
    ),
)
