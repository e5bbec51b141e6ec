"""E22: what the limits that reviewers ask for bound, and what each costs.

Four limits, each alone: keys read of one publisher, publishers read, bytes of cached nodes, publications of one
publisher in a block. The worst block that each allows is built and measured. The limit of cached bytes also runs at
several paces, because it shrinks one proof and grows the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import READER, UPSTREAM_A_BLOCK, Feeds
from relaycast.experiments.ground.simulations import check, mean
from relaycast.network import Network
from relaycast.scenario.workload import value_of
from relaycast_ledger import BlockRecord
from relaycast_pallets import DataPublished
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import LARGEST_BRANCH_BYTES
from relaycast_xcm import ParaId

VALUE_BYTES = 16
KEYS, PUBLISHERS = "max_subscribed_keys", "max_publishers"
CACHE, PUBLISHES = "max_cached_bytes", "max_publishes_per_block"

ASKED_TOTAL_KEYS, ASKED_CACHE_BYTES, ASKED_PUBLISHES = 1_000, 10_000_000, 10
"""Limits that reviewers of the draft ask for: subscriptions in all, bytes of the cache, publications in a block."""

QUARTER = 0.25
SHARES = (1.0, 0.5, QUARTER, 0.125, 0.0625, 0.03125, 0.0)
"""Limits of cached bytes, as shares of the whole structure of the keys read."""

READERS = ((200, 200), (1_000, 200), (1_000, 1_000))
"""Keys published and keys read."""

PACES = (0.005, 0.025, 0.1)
"""Shares of the keys read that are new in every block."""

BURST = 200
"""Keys of a publisher that changes them all at once."""


class Limited(Row, frozen=True, kw_only=True):
    """One setting of one limit; bytes of a block are relay proof (static keys left out) and own proof, uncompressed."""

    limit: str
    setting: int | None
    """``None`` where there is no limit."""

    keys: int
    """Keys that a publisher has, ``read`` those that the reader wants of all publishers together."""

    read: int
    publishers: int
    changed: int
    """Keys that change in a block, of all publishers together."""

    blocks: int
    cached_bytes: int
    """Bytes of cached nodes at the end."""

    cached_bytes_bound: int
    """The most that they can be: the limit, or 16 of the largest branches for each key."""

    relay_bytes: float
    own_bytes: float
    callbacks: float
    told_again: float
    """Callbacks of a block that repeat an entry."""

    relay_bytes_max: int
    own_bytes_max: int
    callbacks_max: int
    latency_blocks: int
    """The longest latency of a value, in relay blocks, with the time for which its publisher holds it back."""

    refused: int = 0
    """Publications that the relay chain refuses of a burst that its publisher does not spread."""


def measure(scale: Scale) -> list[Limited]:
    """Run every limit at every setting."""
    return [*_keys(scale), *_publishers(scale), *_cache(scale), *_publishes(scale)]


def _keys(scale: Scale) -> Iterator[Limited]:
    """Let all keys read be new, as far as a publisher can send them in one block."""
    for read in scale.pick((10, 100, 1_000, 4_000), (10, 40)):
        feeds = Feeds.settled(keys=scale.pick(4_000, 60), read=read, value_bytes=VALUE_BYTES, seed=scale.seed)
        changed = min(read, UPSTREAM_A_BLOCK)
        yield _row(KEYS, read, feeds, feeds.blocks(scale.pick(4, 2), changed=changed), changed=changed)


def _publishers(scale: Scale) -> Iterator[Limited]:
    """Let every publisher that is read change ten keys in every block."""
    for count in scale.pick((1, 10, 100), (1, 3)):
        network = Network(seed=scale.seed)
        publishers = [network.publisher(2_000 + index) for index in range(count)]
        wanted = [it.feed(f"key/{index}") for it in publishers for index in range(10)]
        network.subscriber(READER, keys=wanted, max_publishers=count)
        records: list[BlockRecord] = []
        for block in range(scale.pick(10, 8)):
            for publisher in publishers:
                for index in range(10):
                    value = value_of(scale.seed, publisher.para_id, index, block, VALUE_BYTES)
                    publisher.publish(f"key/{index}", value)
            records += network.ledger.step()
        check(network)
        yield _measured(PUBLISHERS, count, network, records[5:], keys=10, read=10 * count, changed=10 * count)


def _cache(scale: Scale) -> Iterator[Limited]:
    """Let a part of the keys read be new in every block, under shares of the bytes that their whole structure takes."""
    for keys, read in scale.pick(READERS, ((60, 60),)):
        for pace in scale.pick(PACES, PACES[1:]):
            changed, whole = max(1, round(pace * read)), 0
            for share in (None, *scale.pick(SHARES, (1.0, QUARTER, 0.0))):
                setting = None if share is None else int(share * whole)
                feeds = Feeds.settled(
                    keys=keys, read=read, value_bytes=VALUE_BYTES, seed=scale.seed, max_cached_bytes=setting
                )
                row = _row(CACHE, setting, feeds, feeds.blocks(scale.pick(8, 4), changed=changed), changed=changed)
                whole = whole or row.cached_bytes
                yield row


def _publishes(scale: Scale) -> Iterator[Limited]:
    """Let a publisher change all its keys, spread over as many blocks as the limit asks for."""
    burst = scale.pick(BURST, 40)
    for setting in scale.pick((1, 10, 50, None), (10, None)):
        feeds = Feeds.settled(keys=burst, read=burst, value_bytes=VALUE_BYTES, seed=scale.seed)
        a_block, records = setting or burst, list[BlockRecord]()
        began = feeds.network.chains.tick + 1
        for first in range(0, burst + 3 * a_block, a_block):
            feeds.publish(range(first, min(first + a_block, burst)))
            records += feeds.network.ledger.step()
        check(feeds.network)
        told = [it for it in records if it.deliveries]
        latency = max(delivery.delivered_at for it in told for delivery in it.deliveries) - began
        refused = 0 if setting is None else burst - _taken_of_a_burst(scale, burst, setting)
        yield _row(PUBLISHES, setting, feeds, told, changed=a_block, latency=latency, refused=refused)


def _taken_of_a_burst(scale: Scale, burst: int, setting: int) -> int:
    """Return how many publications of one burst a relay chain takes that limits them."""
    network = Network(seed=scale.seed, broadcaster=_with_limit(setting))
    publisher = network.publisher(2_000)
    network.chains.step()
    publisher.publish_many({f"key/{index}": bytes(VALUE_BYTES) for index in range(burst)})
    taken = 0
    for _ in range(4):
        network.chains.step()
        taken += sum(isinstance(event, DataPublished) for event in network.chains.relay_chain.head.events)
    return taken


def _with_limit(setting: int) -> BroadcasterConfig:
    return replace(POLKADOT, max_publishes_per_block=setting)


def _row(
    limit: str,
    setting: int | None,
    feeds: Feeds,
    records: Sequence[BlockRecord],
    *,
    changed: int,
    latency: int | None = None,
    refused: int = 0,
) -> Limited:
    read = sum(map(len, feeds.network.chains.parachains[ParaId(READER)].kept.wanted.values()))
    return _measured(
        limit,
        setting,
        feeds.network,
        records,
        keys=len(feeds.feeds),
        read=read,
        changed=changed,
        latency=latency,
        refused=refused,
    )


def _measured(
    limit: str,
    setting: int | None,
    network: Network,
    records: Sequence[BlockRecord],
    *,
    keys: int,
    read: int,
    changed: int,
    latency: int | None = None,
    refused: int = 0,
) -> Limited:
    """Return the row of these blocks of the reader."""
    parachain = network.chains.parachains[ParaId(READER)]
    subscriber, followed = parachain.subscriber, list(parachain.kept.wanted)
    cached = sum(len(node) for publisher in followed for node in subscriber.cached_nodes(publisher).values())
    config = subscriber.config
    bound = read * config.max_trie_depth * LARGEST_BRANCH_BYTES
    relay = [record.proof_bytes - record.static_bytes for record in records]
    fresh = [it.latency_blocks for record in records for it in record.deliveries if not it.told_again]
    return Limited(
        limit=limit,
        setting=setting,
        keys=keys,
        read=read,
        publishers=len(followed),
        changed=changed,
        blocks=len(records),
        cached_bytes=cached,
        cached_bytes_bound=bound if config.max_cached_bytes is None else min(bound, config.max_cached_bytes),
        relay_bytes=mean(relay),
        own_bytes=mean(record.own_bytes for record in records),
        callbacks=mean(len(record.deliveries) for record in records),
        told_again=mean(sum(it.told_again for it in record.deliveries) for record in records),
        relay_bytes_max=max(relay),
        own_bytes_max=max(record.own_bytes for record in records),
        callbacks_max=max(len(record.deliveries) for record in records),
        latency_blocks=max(fresh) if latency is None else latency,
        refused=refused,
    )


def named(row: Limited) -> str:
    """Return the label of a reader."""
    return f"{row.read:,} of {row.keys:,} keys"


def _block_bytes(row: Limited) -> float:
    return row.relay_bytes + row.own_bytes


def quarters(rows: Sequence[Limited]) -> list[tuple[Limited, Limited]]:
    """Return, of each reader and pace, the row without a limit of cached bytes and that with a quarter of its bytes."""
    whole = {(it.keys, it.read, it.changed): it for it in rows if it.limit == CACHE and it.setting is None}
    pairs = [(whole[it.keys, it.read, it.changed], it) for it in rows if it.limit == CACHE and it.setting is not None]
    return [(free, row) for free, row in pairs if row.setting == int(QUARTER * free.cached_bytes)]


def answer(rows: Sequence[Limited]) -> str:
    """Say what each limit bounds, and what it costs."""
    keys, publishers = ([row for row in rows if row.limit == name] for name in (KEYS, PUBLISHERS))
    few, most, many = keys[1], keys[-1], publishers[-1]
    paced = next(row for row in rows if row.limit == PUBLISHES and row.setting == ASKED_PUBLISHES)
    free = next(row for row in rows if row.limit == PUBLISHES and row.setting is None)
    saved = sorted(1 - _block_bytes(row) / _block_bytes(whole) for whole, row in quarters(rows))
    again = sorted(row.told_again / row.changed for _, row in quarters(rows))
    bound = ASKED_TOTAL_KEYS * SubscriberConfig().max_trie_depth * LARGEST_BRANCH_BYTES
    return (
        f"A cache of a quarter of the nodes, those nearest to the root, makes both proofs of a block {saved[0]:.0%} to "
        f"{saved[-1]:.0%} smaller than a cache of all; for that, {again[0]:.1f} to {again[-1]:.1f} callbacks are told "
        f"again with each change; the {ASKED_CACHE_BYTES // 10**6} MB of cache that reviewers ask for never bind "
        f"beside their {ASKED_TOTAL_KEYS:,} keys in all, whose nodes have {bound:,} bytes at most; with "
        f"{few.setting:,} keys of one publisher the worst block has {_worst(few):,} bytes of both proofs, with "
        f"{most.setting:,} keys {_worst(most):,}; of these keys a publisher can change {most.changed:,} at a time; all "
        f"of {many.read:,} keys of {many.publishers} publishers take {_worst(many):,} bytes when they change; with "
        f"{paced.setting} publications a block, a burst of {paced.read} values takes {paced.latency_blocks} blocks "
        f"instead of {free.latency_blocks}; its worst block then has {_worst(paced):,} bytes instead of "
        f"{_worst(free):,}; a publisher that does not spread it has {paced.refused} publications refused (values of "
        f"{VALUE_BYTES} bytes; relay proof without static keys, and own proof, uncompressed)."
    )


def _worst(row: Limited) -> int:
    return row.relay_bytes_max + row.own_bytes_max


def chart(rows: Sequence[Limited]) -> Chart:
    """Draw what a limit of cached bytes makes of a block's proofs; one of 0 bytes is the policy ``cache = "none"``."""
    whole = {(it.keys, it.read, it.changed): it for it in rows if it.limit == CACHE and it.setting is None}
    limited = [it for it in rows if it.limit == CACHE and it.setting]
    paired = [(row, whole[row.keys, row.read, row.changed]) for row in limited]
    return Chart(
        title="Proofs of a block under a limit of cached bytes, against no limit",
        mark="line",
        x=Axis(field="kept", title="limit, as a share of the whole structure", log=True, percent=True),
        y=Axis(field="bytes", title="relay and own proof, against no limit", percent=True),
        colour=Axis(field="reader", title="reader", names=True, order=tuple(dict.fromkeys(map(named, limited)))),
        dash=Axis(field="pace", title="keys changed in a block", names=True),
        points=[
            {
                "kept": round((row.setting or 0) / free.cached_bytes, 4),
                "bytes": round(_block_bytes(row) / _block_bytes(free), 4),
                "reader": named(row),
                "pace": f"{row.changed / row.read:.1%}",
            }
            for row, free in paired
        ],
        rules=((1, "no limit"),),
    )


EXPERIMENT = Experiment(
    name="E22",
    slug="limits",
    question="What do limits on keys, publishers, cached bytes and publications bound, and what do they cost?",
    row=Limited,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Exact: bytes of proofs, cached nodes, callbacks. Assumed: values of 16 bytes, one block a relay block, a "
        "publisher that sends 256 publications a block at most (16 messages of 16 instructions).",
        "Each limit is measured with the others unset. The draft's own limits hold throughout: 16 nodes on a path, "
        "4,000 keys of a publisher, 2,048 bytes of a value.",
        "Under a limit of cached bytes every publisher has the same share, and nodes nearest to its root are kept "
        "first. What is left out is proven and delivered again when a change leads there; no update is lost.",
        "The bound of a cache without a limit is 16 branches of 564 bytes for each key, far above what is kept: a "
        "publisher reaches it only with crafted keys.",
    ),
    first_cut=(
        "Expected: a smaller cache makes larger proofs. Measured: the relay proof grows slowly, because the nodes "
        "nearest to the root are those that every path needs. The own proof shrinks with every node that is no longer "
        "kept, read and replaced. A quarter of a structure carries fewer bytes than all of it."
    ),
)
