"""E8: what it costs to publish a value again that has not changed.

An entry says when it was inserted. The same value published again is therefore another entry: it is proven, told and
cached like a new one.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import PUBLISHER, READER, Feeds
from relaycast.experiments.ground.simulations import check, mean
from relaycast.scenario.workload import value_of
from relaycast_collator.outbox import Publication
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId

SILENT, SAME, NEW = MODES = ("silent", "same value again", "new value")
KEYS = (50, 1_000)
VALUE_BYTES = (16, 384, 2_048)
BEATING = 10
"""Keys that beat in each block."""


class Beats(Row, frozen=True, kw_only=True):
    """Blocks in which ``beating`` of the keys are published; bytes a block, means over ``blocks``."""

    mode: str
    keys: int
    value_bytes: int
    beating: int
    blocks: int
    message_bytes: int
    relay_bytes: float
    own_bytes: float
    callbacks: float
    bytes_per_beat: float
    """Bytes of both proofs for each key that beats, beyond those of a silent block."""


def measure(scale: Scale) -> list[Beats]:
    """Let keys beat in all modes."""
    return [
        row
        for keys in scale.pick(KEYS, KEYS[:1])
        for value_bytes in VALUE_BYTES
        for row in _modes(scale, keys, value_bytes)
    ]


def _modes(scale: Scale, keys: int, value_bytes: int) -> list[Beats]:
    rows: list[Beats] = []
    blocks = scale.pick(12, 4)
    for mode in MODES:
        feeds = Feeds.settled(keys=keys, read=keys, value_bytes=value_bytes, seed=scale.seed)
        relay, own, callbacks = _blocks(feeds, mode, blocks)
        still = rows[0].relay_bytes + rows[0].own_bytes if rows else relay + own
        beats = 0 if mode == SILENT else BEATING
        rows.append(
            Beats(
                mode=mode,
                keys=keys,
                value_bytes=value_bytes,
                beating=beats,
                blocks=blocks,
                message_bytes=beats * Publication(SubscribedKey(bytes(32)), bytes(value_bytes), 0, 0, 0).encoded_bytes,
                relay_bytes=relay,
                own_bytes=own,
                callbacks=callbacks,
                bytes_per_beat=round((relay + own - still) / BEATING, 1),
            )
        )
    return rows


def _blocks(feeds: Feeds, mode: str, count: int) -> tuple[float, float, float]:
    """Return means of relay bytes, own bytes and callbacks of the reader's blocks."""
    chains, records = feeds.network.chains, []
    for block in range(count + 2):
        for index in range(BEATING if mode != SILENT else 0):
            turn = 0 if mode == SAME else block + 1
            feeds.publisher.publish(f"key/{index}", value_of(chains.seed, PUBLISHER, index, turn, feeds.value_bytes))
        records += feeds.network.ledger.step()
    check(feeds.network)
    seen = [record for record in records if record.para_id == ParaId(READER)][2:]
    return (
        mean(record.proof_bytes - record.static_bytes for record in seen),
        mean(record.own_bytes for record in seen),
        mean(len(record.deliveries) for record in seen),
    )


def answer(rows: Sequence[Beats]) -> str:
    """Say what a heartbeat costs beside a new value."""
    found = {(row.keys, row.value_bytes, row.mode): row for row in rows}
    keys = max(row.keys for row in rows)
    small = found[keys, VALUE_BYTES[0], SAME]
    worst = max(
        abs(found[count, size, SAME].bytes_per_beat / found[count, size, NEW].bytes_per_beat - 1)
        for count, size, mode in found
        if mode == SAME
    )
    return (
        f"Publishing an unchanged value again costs each reader as much as a new one, within {worst:.1%}: "
        f"{small.bytes_per_beat:,.0f} bytes of proof for {small.value_bytes} bytes, and a callback; a block with "
        f"{BEATING} heartbeats makes {small.callbacks:g} callbacks; when nothing is published, a block carries "
        f"{found[keys, VALUE_BYTES[0], SILENT].relay_bytes:,.0f} bytes to prove that nothing moved ({BEATING} of "
        f"{keys:,} subscribed keys are published in every block; relay and own proof together, uncompressed, beyond "
        "those of a block without publications; cache on)."
    )


def chart(rows: Sequence[Beats]) -> Chart:
    """Draw the modes side by side."""
    return Chart(
        title="Bytes of proof for a key published again",
        mark="bar",
        x=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        y=Axis(field="bytes", title="relay and own proof, bytes per key"),
        colour=Axis(field="mode", title="", names=True, order=(SAME, NEW)),
        panel=Axis(field="keys", title="keys of the publisher", names=True, order=tuple(f"{it:,}" for it in KEYS)),
        points=[
            {"value": f"{row.value_bytes:,}", "bytes": row.bytes_per_beat, "mode": row.mode, "keys": f"{row.keys:,}"}
            for row in rows
            if row.mode != SILENT
        ],
        width=230,
    )


EXPERIMENT = Experiment(
    name="E8",
    slug="heartbeat",
    question="What does it cost to publish the same value again?",
    row=Beats,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "The relay chain stores with each entry when it was inserted, as the draft does. A relay chain that ignored an "
        "unchanged value would save all of this, but could not renew a time to live.",
        "A parachain's time to live that has to be renewed is a heartbeat.",
    ),
)
