"""E5: what message load leaves of pub-sub, with and without a floor under it.

A parachain's blocks are filled with horizontal messages before the relay proof gets what is left. Fifty feeds change
in every block; how many of their values still arrive?
"""

from collections.abc import Iterator, Sequence
from random import Random

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import READER, Feeds
from relaycast.experiments.ground.simulations import mean, percentile
from relaycast.scenario.policy_choice import PolicyTable
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES
from relaycast_xcm import ParaId

KEYS, VALUE_BYTES = 50, 16
BUDGETS = ("remaining", "floor:16384", "floor:65536", "cumulus")
LOADS = (0.0, 0.25, 0.5, 0.99, 0.999, 1.0, 1.5)
"""Bytes of messages that arrive for each block, of the 85 % of it that a collator uses; what does not fit waits."""

MESSAGE_BYTES = (2_000, 60_000)
"""The mean; each message has between half and one and a half of it."""

ALLOWED_BYTES = MAX_POV_BYTES * 85 // 100


class Starved(Row, frozen=True, kw_only=True):
    """A load under a budget; counts are of ``blocks`` blocks, budgets are means."""

    budget: str
    message_bytes: int
    load: float
    blocks: int
    budget_bytes: float
    published: int
    callbacks: int
    delivered_share: float
    p50_latency_blocks: int | None
    p99_latency_blocks: int | None
    blocks_with_nothing: int
    message_bytes_in_full: float
    """Bytes of messages that a block holds in full; the rest waits."""


def measure(scale: Scale) -> list[Starved]:
    """Fill blocks more and more."""
    budgets, loads = scale.pick(BUDGETS, BUDGETS[:2]), scale.pick(LOADS, (0.0, 0.99, 1.5))
    sizes = scale.pick(MESSAGE_BYTES, MESSAGE_BYTES[1:])
    return [_loaded(scale, budget, size, load) for size in sizes for budget in budgets for load in loads]


def _loaded(scale: Scale, budget: str, message_bytes: int, load: float) -> Starved:
    table, blocks = PolicyTable(budget=budget), scale.pick(12, 6)
    feeds = Feeds.settled(keys=KEYS, read=KEYS, value_bytes=VALUE_BYTES, seed=scale.seed, policies=table)

    def traffic(tick: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        return (), tuple(_messages(load, message_bytes, Random(f"{scale.seed} {tick}")))  # noqa: S311

    feeds.network.chains.traffic[ParaId(READER)] = traffic
    records = feeds.blocks(blocks, changed=KEYS)
    latencies = [it.latency_blocks for record in records for it in record.deliveries]
    published = KEYS * len(records)
    return Starved(
        budget=budget,
        message_bytes=message_bytes,
        load=load,
        blocks=len(records),
        budget_bytes=mean(record.budget_bytes for record in records),
        published=published,
        callbacks=len(latencies),
        delivered_share=round(len(latencies) / published, 4),
        p50_latency_blocks=percentile(latencies, 50),
        p99_latency_blocks=percentile(latencies, 99),
        blocks_with_nothing=sum(not record.deliveries for record in records),
        message_bytes_in_full=mean(record.message_bytes - record.hashed_bytes for record in records),
    )


def _messages(load: float, message_bytes: int, draw: Random) -> Iterator[bytes]:
    left = round(load * ALLOWED_BYTES)
    while left > 0:
        size = min(left, draw.randint(message_bytes // 2, message_bytes * 3 // 2))
        yield bytes(size)
        left -= size


def answer(rows: Sequence[Starved]) -> str:
    """Say what arrives when blocks are full."""
    full = {(row.budget, row.message_bytes): row for row in rows if row.load == max(LOADS)}
    sizes = sorted({size for _, size in full})
    none, some = full["remaining", sizes[0]], full["remaining", sizes[-1]]
    larger = (
        f"; with messages of {sizes[-1] / 1000:g} kB {some.delivered_share:.0%} of the values arrive, in what the last "
        "message that does not fit leaves over"
    )
    lossy = [row.load for row in rows if row.budget == "remaining" and row.delivered_share < 1]
    last = max((row.load for row in rows if row.load < min(lossy, default=1)), default=0.0)
    floors = [full["floor:16384", size] for size in sizes]
    arrived = min(row.delivered_share for row in floors)
    late = max(row.p99_latency_blocks or 0 for row in floors)
    price = max(
        1 - row.message_bytes_in_full / full["remaining", row.message_bytes].message_bytes_in_full for row in floors
    )
    return (
        f"Without a floor, {KEYS} feeds lose nothing while messages fill {last:.1%} of a block's room, and "
        f"{none.delivered_share:.0%} of their values arrive when more messages of {sizes[0] / 1000:g} kB come than "
        f"fit{larger if len(sizes) > 1 else ''}; a floor of 16 KiB then delivers {arrived:.0%} of the values with a "
        f"p99 of {late} blocks, for {max(0.0, price):.1%} of the messages' room{_sixths(rows)} ({KEYS} values of "
        f"{VALUE_BYTES} bytes, all new in every block; a block's room is the 85 % of 10 MiB that a collator uses; "
        f"horizontal messages of random sizes around the mean, {max(LOADS):.0%} of the room where more come than fit)."
    )


def _sixths(rows: Sequence[Starved]) -> str:
    """Say from which load on cumulus' own shares starve the feeds, where that was measured."""
    starved = [row.load for row in rows if row.budget == "cumulus" and row.delivered_share < 1]
    if not starved:
        return ""
    return f"; the sixths that cumulus gives to messages starve the feeds from {min(starved):.0%} of the room on"


def chart(rows: Sequence[Starved]) -> Chart:
    """Draw what arrives against the load."""
    sizes = tuple(f"{size / 1000:g}" for size in MESSAGE_BYTES)
    return Chart(
        title="Values that arrive under message load",
        mark="line",
        x=Axis(field="load", title="messages that arrive, of the block's room", percent=True),
        y=Axis(field="delivered", title="published values that arrive", percent=True),
        colour=Axis(field="budget", title="budget", names=True, order=BUDGETS),
        panel=Axis(field="messages", title="kB of a message", names=True, order=sizes),
        points=[
            {
                "load": row.load,
                "delivered": row.delivered_share,
                "budget": row.budget,
                "messages": f"{row.message_bytes / 1000:g}",
            }
            for row in sorted(rows, key=lambda row: BUDGETS.index(row.budget))
        ],
        nested=True,
        width=300,
    )


EXPERIMENT = Experiment(
    name="E5",
    slug="starvation",
    question="What does message load leave of pub-sub?",
    row=Starved,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Messages are given in full in their order until one does not fit; the rest is hashed and waits (cumulus).",
        "At 100 % of the room the messages fill it to the byte, which leaves nothing; beyond it the next message "
        "hardly ever fits exactly.",
        "The budget called cumulus gives a sixth of the block to each kind of message and what they leave to pub-sub.",
        "A parachain's own transactions are not in these blocks: they have what is left of the block behind pub-sub.",
    ),
)
