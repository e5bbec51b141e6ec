"""E13: the same values to many readers, by horizontal messages and by pub-sub.

Pub-sub is run; of horizontal messages the bytes are made and the channels proven, their way is reckoned. Every
assumption about them is a note of this experiment, and favours them where in doubt.
"""

from collections.abc import Sequence
from functools import cache

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import PUBLISHER, READER, Feeds
from relaycast.experiments.ground.simulations import mean
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.workload import value_of
from relaycast_collator.relay_chain import modelled_genesis
from relaycast_pallets.broadcaster.config import POLKADOT, UNITS
from relaycast_pallets.frame.well_known_keys import (
    hrmp_channel,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
    static_relay_keys,
)
from relaycast_pallets.messaging.hrmp_channel import HrmpChannel
from relaycast_trie import StateVersion, StorageProof, blake2_256
from relaycast_trie.plain.build import build_database
from relaycast_trie.scale import encode_compact
from relaycast_xcm import MAX_PUBLISH_INSTRUCTIONS, ParaId, Publish, encode_versioned_xcm

KEYS = 50
READERS = (1, 3, 10, 30, 100)
CHANGED = (1, 10, 50)
VALUE_BYTES = (16, 384, 2_048)

PUB_SUB, HRMP = "pub-sub", "HRMP"

CHANNEL = HrmpChannel(
    max_capacity=25,
    max_total_size=102_400,
    max_message_size=102_400,
    msg_count=1,
    total_size=1_000,
    mqc_head=blake2_256(b"messages"),
    sender_deposit=10 * UNITS,
    recipient_deposit=10 * UNITS,
)
"""A channel that has held a message."""

MAX_OUTBOUND_CHANNELS = 30
MAX_MESSAGES_PER_CANDIDATE = 10
CHANNEL_DEPOSITS = 20
"""Polkadot's host configuration: ``hrmp_max_parachain_outbound_channels``, ``hrmp_max_message_num_per_candidate``,
and the sender's and the recipient's deposits together, in DOT."""

FORMAT_BYTES = 1
"""Before the messages of a page: ``XcmpMessageFormat``."""


class FanOut(Row, frozen=True, kw_only=True):
    """One way of telling ``readers`` of ``changed`` values in each block; bytes a block."""

    design: str
    readers: int
    changed: int
    value_bytes: int
    publisher_bytes: float
    """Bytes of its block: messages, and the proof of its channels."""

    relay_bytes: float
    """Messages in candidates, in every relay block."""

    reader_bytes: float
    """Bytes of each reader's block: messages and the proof of the channel, or relay proof and cache."""

    total_bytes: float
    reachable: bool
    """Whether the host configuration allows that many channels."""

    blocks_to_send: int
    deposit_dot: int


def measure(scale: Scale) -> list[FanOut]:
    """Tell more and more readers of more and longer values."""
    rows: list[FanOut] = []
    for value_bytes in scale.pick(VALUE_BYTES, VALUE_BYTES[::2]):
        for changed in scale.pick(CHANGED, CHANGED[1:2]):
            cost = min(_read(scale, changed, value_bytes, cache) for cache in ("structure", "none"))
            rows += [_published(readers, changed, value_bytes, cost) for readers in READERS]
            rows += [_sent(scale, readers, changed, value_bytes) for readers in READERS]
    return rows


def _read(scale: Scale, changed: int, value_bytes: int, cache: str) -> float:
    """Return what pub-sub takes of a reader's block, with the cache or without."""
    feeds = Feeds.settled(
        keys=KEYS, read=KEYS, value_bytes=value_bytes, seed=scale.seed, policies=PolicyTable(cache=cache)
    )
    records = feeds.blocks(scale.pick(8, 4), changed=changed)
    return mean(record.proof_bytes - record.static_bytes + record.own_bytes for record in records)


def _messages(changed: int, value_bytes: int) -> list[bytes]:
    """Return the messages that say it, sixteen ``Publish`` in each."""
    publishing = [
        Publish(blake2_256(b"key/%d" % index), value_of(0, PUBLISHER, index, 0, value_bytes), 0)
        for index in range(changed)
    ]
    pages = range(0, changed, MAX_PUBLISH_INSTRUCTIONS)
    return [encode_versioned_xcm(publishing[at : at + MAX_PUBLISH_INSTRUCTIONS]) for at in pages]


def _published(readers: int, changed: int, value_bytes: int, reader_bytes: float) -> FanOut:
    message_bytes = sum(map(len, _messages(changed, value_bytes)))
    return FanOut(
        design=PUB_SUB,
        readers=readers,
        changed=changed,
        value_bytes=value_bytes,
        publisher_bytes=message_bytes,
        relay_bytes=message_bytes,
        reader_bytes=reader_bytes,
        total_bytes=round(2 * message_bytes + readers * reader_bytes, 1),
        reachable=True,
        blocks_to_send=1,
        deposit_dot=POLKADOT.publisher_deposit // UNITS,
    )


def _sent(scale: Scale, readers: int, changed: int, value_bytes: int) -> FanOut:
    message_bytes = FORMAT_BYTES + sum(map(len, _messages(changed, value_bytes)))
    publisher_proof, reader_proof = channel_proofs(readers, scale.seed)
    publisher_bytes, relay_bytes = readers * message_bytes + publisher_proof, readers * message_bytes
    reader_bytes = message_bytes + reader_proof
    return FanOut(
        design=HRMP,
        readers=readers,
        changed=changed,
        value_bytes=value_bytes,
        publisher_bytes=publisher_bytes,
        relay_bytes=relay_bytes,
        reader_bytes=reader_bytes,
        total_bytes=publisher_bytes + relay_bytes + readers * reader_bytes,
        reachable=readers <= MAX_OUTBOUND_CHANNELS,
        blocks_to_send=-(-readers // MAX_MESSAGES_PER_CANDIDATE),
        deposit_dot=CHANNEL_DEPOSITS * readers,
    )


@cache
def channel_proofs(readers: int, seed: int) -> tuple[int, int]:
    """Return the bytes by which the publisher's and a reader's static relay proofs grow with their channels."""
    publisher, all_readers = ParaId(PUBLISHER), [ParaId(READER + index) for index in range(readers)]
    without = dict(modelled_genesis(seed).top)
    keys = [hrmp_channel(publisher, reader) for reader in all_readers]
    open_to = encode_compact(readers) + b"".join(reader.encode() for reader in all_readers)
    holding = {**without, **dict.fromkeys(keys, CHANNEL.encode()), hrmp_egress_channel_index(publisher): open_to}
    for reader in all_readers:
        holding[hrmp_ingress_channel_index(reader)] = encode_compact(1) + publisher.encode()
    last = all_readers[-1]
    return (
        _proof_bytes(holding, [*static_relay_keys(publisher), *keys])
        - _proof_bytes(without, static_relay_keys(publisher)),
        _proof_bytes(holding, [*static_relay_keys(last), keys[-1]]) - _proof_bytes(without, static_relay_keys(last)),
    )


def _proof_bytes(state: dict[bytes, bytes], keys: Sequence[bytes]) -> int:
    db, root = build_database(state, state_version=StateVersion.V1)
    return StorageProof.generate(db, root, keys).proof_bytes


def answer(rows: Sequence[FanOut]) -> str:
    """Say who moves fewer bytes, and where that turns round."""
    changed = CHANGED[1]
    cases = {(row.design, row.value_bytes, row.readers): row for row in rows if row.changed == changed}
    sizes = sorted({size for _, size, _ in cases})
    each = "".join(
        f", {cases[PUB_SUB, size, 1].reader_bytes:,.0f} and {cases[HRMP, size, 30].reader_bytes:,.0f} for {size:,}"
        for size in sizes[1:]
    )
    turns = ", ".join(_turn(cases, size) for size in reversed(sizes)).replace(" for ", " for values of ", 1)
    one, most = cases[PUB_SUB, sizes[0], 1], cases[HRMP, sizes[0], MAX_OUTBOUND_CHANNELS]
    relay = most.relay_bytes / cases[PUB_SUB, sizes[0], most.readers].relay_bytes
    return (
        f"Of all blocks together, pub-sub moves fewer bytes than HRMP {turns}; a reader's block carries "
        f"{one.reader_bytes:,.0f} bytes by pub-sub and {most.reader_bytes:,.0f} by HRMP for values of {sizes[0]} "
        f"bytes{each}; the relay chain and the publisher always carry one message instead of one for each reader, "
        f"{relay:.0f} times less at {most.readers} readers; pub-sub takes a deposit of {one.deposit_dot} DOT, HRMP "
        f"{CHANNEL_DEPOSITS} for each reader; by HRMP a publisher reaches {MAX_OUTBOUND_CHANNELS} readers at most, "
        f"{MAX_MESSAGES_PER_CANDIDATE} in a block ({KEYS} keys, every reader wants all, {changed} new in every block; "
        f"{max(READERS)} readers at most; pub-sub with or without the cache, whichever is less; assumptions about HRMP "
        "below)."
    )


def _turn(cases: dict[tuple[str, int, int], FanOut], size: int) -> str:
    better = [
        readers
        for readers in READERS
        if cases[PUB_SUB, size, readers].total_bytes < cases[HRMP, size, readers].total_bytes
    ]
    return f"from {min(better)} readers on for {size:,} bytes" if better else f"never for {size:,} bytes"


def chart(rows: Sequence[FanOut]) -> Chart:
    """Draw the bytes of all blocks together against the readers."""
    return Chart(
        title=f"Bytes of all blocks together for {CHANGED[1]} new values",
        mark="line",
        x=Axis(field="readers", title="readers", log=True),
        y=Axis(field="bytes", title="bytes in a block of each chain, summed", log=True),
        colour=Axis(field="design", title="", names=True, order=(PUB_SUB, HRMP)),
        panel=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        points=[
            {
                "readers": row.readers,
                "bytes": row.total_bytes,
                "design": row.design,
                "value": f"{row.value_bytes:,}",
            }
            for row in rows
            if row.changed == CHANGED[1]
        ],
        width=230,
    )


EXPERIMENT = Experiment(
    name="E13",
    slug="hrmp-fan-out",
    question="Is pub-sub cheaper than a message to everyone?",
    row=FanOut,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "HRMP, assumed: every reader is sent the SCALE message that would be published, with one byte of page format.",
        "HRMP, assumed: the sender's block holds all messages and proves all its channels. Candidates carry all "
        "messages into relay blocks. A reader's block holds its message and proves its channel. An HrmpChannel has 85 "
        "bytes, in a modelled relay state of 512 other entries, exact to the node.",
        "HRMP, assumed: limits and deposits of Polkadot's host configuration (30 outbound channels, 10 messages a "
        "candidate, 10 DOT from each side).",
        "Left out, in favour of HRMP: queues in the state of sender and reader, channel storage of the relay chain, "
        "and weights of executing messages. Left out, in favour of pub-sub: entries that stay in the relay chain's "
        "state.",
        "Both take two relay blocks from sending to reading, as long as messages fit a candidate.",
    ),
)
