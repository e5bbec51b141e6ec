"""E19: the cost of telling readers about deletions, compared with the draft's silence.

The same network runs twice, with deletions silent and told: one publisher, a reader of all its keys, and one event that
changes keys. The bytes of the reader's blocks from then on are compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import PUBLISHER, READER, UPSTREAM_A_BLOCK
from relaycast.experiments.ground.simulations import check
from relaycast.network import Network
from relaycast.scenario.workload import value_of
from relaycast_ledger import BlockRecord
from relaycast_pallets import Origin
from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_xcm import ParaId, Weight

KEYS = (10, 100, 1_000, 3_000)
VALUE_BYTES = 32
SHARE = 10
"""One key in this many is updated or deleted."""

CALM = 4
"""Blocks between the values' arrival and the event; as many are measured after the last change."""

QUIET, UPDATE, DELETION, EXPIRY, DEREGISTRATION = "nothing", "update", "deletion", "expiry", "deregistration"
CAUSES = {
    QUIET: "nothing happens",
    UPDATE: "one key in ten gets a new value",
    DELETION: "one key in ten is deleted",
    EXPIRY: "all keys expire",
    DEREGISTRATION: "the publisher deregisters",
}

CONFIG = BroadcasterConfig(
    name="many keys",
    source="Polkadot's limits, with room for more keys of one publisher",
    max_stored_keys=max(KEYS),
    max_total_storage_size=1 << 20,
)


class Telling(Row, frozen=True, kw_only=True):
    """Bytes that a reader of ``keys`` carries in ``blocks`` after ``cause``; ``extra_`` is what telling adds."""

    cause: str
    keys: int
    gone: int
    blocks: int
    callbacks: int
    told: int
    """Callbacks without a value."""

    stale_silent: int
    """Deleted keys of which the reader has a value at the end."""

    stale_told: int
    proof_bytes: int
    extra_proof_bytes: int
    own_bytes: int
    extra_own_bytes: int
    pov_bytes: int
    extra_pov_bytes: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    records: list[BlockRecord]
    stale: int
    gone: int


def measure(scale: Scale) -> list[Telling]:
    """Run each cause with each number of keys, silent and told."""
    return [_row(scale, cause, keys) for cause in CAUSES for keys in scale.pick(KEYS, KEYS[:2])]


def _row(scale: Scale, cause: str, keys: int) -> Telling:
    silent, told = (_run(scale, cause, keys, deletion) for deletion in ("silent", "told"))
    assert silent.gone == told.gone
    assert len(silent.records) == len(told.records)
    carried = [_carried(outcome.records) for outcome in (silent, told)]
    (proof, own, pov), (told_proof, told_own, told_pov) = carried
    return Telling(
        cause=cause,
        keys=keys,
        gone=silent.gone,
        blocks=len(silent.records),
        callbacks=sum(len(record.deliveries) for record in told.records),
        told=sum(len(record.deletions) for record in told.records),
        stale_silent=silent.stale,
        stale_told=told.stale,
        proof_bytes=proof,
        extra_proof_bytes=told_proof - proof,
        own_bytes=own,
        extra_own_bytes=told_own - own,
        pov_bytes=pov,
        extra_pov_bytes=told_pov - pov,
    )


def _run(scale: Scale, cause: str, keys: int, deletion: str) -> _Outcome:
    network = Network(seed=scale.seed, broadcaster=CONFIG, policies={"deletion": deletion})
    publisher = network.publisher(PUBLISHER)
    feeds = [publisher.feed(f"key/{index}") for index in range(keys)]
    reader = network.subscriber(READER, keys=feeds)
    arrival = -(-keys // UPSTREAM_A_BLOCK) + CALM
    ttl = arrival + CALM if cause == EXPIRY else 0
    for index in range(keys):
        value = value_of(scale.seed, PUBLISHER, index, 0, VALUE_BYTES)
        publisher.publish(f"key/{index}", value, ttl=ttl)
    for _ in range(arrival):
        network.ledger.step()
    assert len(reader) == keys
    _happen(scale, network, cause, keys)
    records: list[BlockRecord] = []
    storage, calm = network.chains.relay_chain.broadcaster.storage, 0
    published = ParaId(PUBLISHER)
    waits = CALM + ttl  # until the first block in which anything can happen
    while calm < waits:
        before = network.chains.relay_chain.state.root, len(storage.keys_of(published))
        records += network.ledger.step()
        after = len(storage.keys_of(published))
        calm = calm + 1 if after == before[1] else 0
        waits = waits if after == keys else CALM
    check(network)
    there = {bytes(key) for key in storage.keys_of(published)}
    stale = sum(feed.key not in there and feed in reader for feed in feeds)
    return _Outcome(records, stale, keys - len(there))


def _happen(scale: Scale, network: Network, cause: str, keys: int) -> None:
    """Let ``cause`` happen with the next blocks."""
    publisher, chosen = network.publisher(PUBLISHER), range(0, keys, SHARE)
    if cause == UPDATE:
        for index in chosen:
            publisher.publish(f"key/{index}", value_of(scale.seed, PUBLISHER, index, 1, VALUE_BYTES))
    elif cause == DELETION:
        gone = [publisher.feed(f"key/{index}").key for index in chosen]
        broadcaster = network.chains.relay_chain.broadcaster
        network.chains.call(
            lambda: broadcaster.force_delete_keys(Origin.root(), ParaId(PUBLISHER), gone), declared=Weight.ZERO
        )
    elif cause == DEREGISTRATION:
        network.chains.deregister_publisher(PUBLISHER)


def _carried(records: Sequence[BlockRecord]) -> tuple[int, int, int]:
    """Return bytes of the relay proofs, of the own state as compact proofs, and of whole blocks."""
    sizes = [(record.proof_bytes, record.pov.own_bytes, record.pov.pov_bytes) for record in records if record.pov]
    proof, own, pov = (sum(column) for column in zip(*sizes, strict=True))
    return proof, own, pov


def answer(rows: Sequence[Telling]) -> str:
    """Say what telling costs, and what silence leaves behind."""
    most = max(row.keys for row in rows)
    by_cause = {row.cause: row for row in rows if row.keys == most}
    quiet, gone = by_cause[QUIET], by_cause[DEREGISTRATION]
    shares = {row.cause: row.extra_pov_bytes / row.pov_bytes for row in by_cause.values() if row.cause != QUIET}
    least, highest = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    proofs = "no byte" if not any(row.extra_proof_bytes for row in rows) else "bytes too"
    return (
        f"Telling takes {proofs} of the relay proof, and with {most:,} keys the reader's own state adds "
        f"{shares[least]:.2%} to {shares[highest]:.2%} to its blocks; it adds least when {CAUSES[least]}, and most "
        f"when {CAUSES[highest]}; silent readers read what proves a key absent as well; a block in which nothing "
        f"happens carries {quiet.extra_pov_bytes / quiet.blocks:.0f} bytes more; after a deregistration a silent "
        f"reader keeps {gone.stale_silent:,} values that are gone, one that is told keeps {gone.stale_told:,} (one "
        f"publisher, {VALUE_BYTES}-byte values; an update, a deletion, expiry or deregistration; bytes of all blocks "
        f"from it to {CALM} blocks after the last change, before compression)."
    )


def chart(rows: Sequence[Telling]) -> Chart:
    """Draw what telling adds, by cause and number of keys."""
    return Chart(
        title="What telling adds to a reader's blocks",
        mark="line",
        x=Axis(field="keys", title="keys that the reader follows", log=True),
        y=Axis(field="bytes", title="extra bytes of all blocks"),
        colour=Axis(field="cause", title="", names=True, order=tuple(CAUSES.values())),
        points=[{"keys": row.keys, "bytes": row.extra_pov_bytes, "cause": CAUSES[row.cause]} for row in rows],
    )


EXPERIMENT = Experiment(
    name="E19",
    slug="deletion-told",
    question="What does it cost to tell readers of deletions?",
    row=Telling,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "`stale_` counts keys that are gone and of which the reader's handler still has a value; own bytes are those "
        "of the compact proof of its state.",
        "A deletion is told where a proof shows the key, or the whole child trie, to be absent. One bit for each key "
        "remembers that the reader was given a value, so each deletion is told once.",
        "Extra bytes can be negative: another item in the own trie moves the nodes that a block carries.",
    ),
)
