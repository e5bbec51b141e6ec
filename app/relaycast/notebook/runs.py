"""How notebooks show networks, readers and runs."""

from relaycast.network import Network, Reader
from relaycast.notebook.chains import COLOURS
from relaycast.notebook.markup import Cell, Part, bar, card
from relaycast.run import Run
from relaycast_ledger.run_statistics import DeliveryTotals, SubscriberStatistics
from relaycast_xcm import ParaId

RUN_COLUMNS = ("reader", "blocks", "callbacks", "proof p50", "p99", "max", "static p50", "own p50", "latency p50/p99")

NOTHING = "nothing delivered"


def network_card(network: Network) -> str:
    """Return the network with its parachains, and what they do."""
    chains, checks = network.chains, network.ledger.invariants
    facts: dict[str, Cell] = {
        "relay block": chains.relay_chain.head.number,
        "state root": chains.relay_chain.head.state_root,
        "invariants": "held" if checks.ok else f"{checks.violated:,} violated",
    }
    rows = [
        (
            str(para_id),
            chain.head.number,
            len(chain.outbox),
            ", ".join(f"{len(keys):,} of {publisher}" for publisher, keys in chain.kept.wanted.items()) or "nothing",
            len(chain.kept.values),
        )
        for para_id, chain in chains.parachains.items()
    ]
    columns = ("parachain", "block", "values waiting", "subscribes to", "values there")
    return card(f"relaycast network at block {chains.tick:,}", facts, columns=columns, rows=rows)


def reader_card(reader: Reader) -> str:
    """Return what a parachain has read, by feed."""
    rows = [(str(feed.publisher), feed.name or feed.key, reader.get(feed)) for feed in reader]
    facts: dict[str, Cell] = {"values there": len(reader)}
    columns = ("publisher", "key", "value") if rows else ()
    return card(f"Reader {reader.para_id}", facts, columns=columns, rows=rows)


def run_card(run: Run) -> str:
    """Return what some blocks came to, by reader, and what the largest one's median block carries."""
    delivery, checks = run.delivery, run.invariants
    facts: dict[str, Cell] = {
        "callbacks": delivery.callbacks,
        "latency": f"p50 {delivery.p50_blocks}, p99 {delivery.p99_blocks}, at most {delivery.max_blocks} blocks"
        if delivery.callbacks
        else NOTHING,
        "invariants": f"{checks.checked:,} checks held" if checks.ok else f"{checks.violated:,} violated",
    }
    rows = [_row(para_id, it) for para_id, it in run.subscribers.items()]
    largest = max(run.subscribers.values(), key=lambda it: it.proof_bytes.total, default=None)
    figure = "" if largest is None else bar(_median(largest))
    title = f"Run of {run.blocks:,} block{'' if run.blocks == 1 else 's'}"
    return card(title, facts, columns=RUN_COLUMNS if rows else (), rows=rows, figure=figure)


def subscriber_tally_card(tally: SubscriberStatistics) -> str:
    """Return the blocks of one subscriber."""
    facts: dict[str, Cell] = {"blocks cut short": tally.incomplete_blocks, "panics": len(tally.panics)}
    return card("Subscriber", facts, columns=RUN_COLUMNS[1:], rows=[_row(0, tally)[1:]], figure=bar(_median(tally)))


def delivery_card(delivery: DeliveryTotals) -> str:
    """Return how values reached their readers."""
    if not delivery.callbacks:
        return card("Relay blocks from publication to callback", {"callbacks": NOTHING})
    facts: dict[str, Cell] = {"p50": delivery.p50_blocks, "p99": delivery.p99_blocks, "at most": delivery.max_blocks}
    return card(f"{delivery.callbacks:,} callbacks, relay blocks from publication", facts)


def _row(para_id: int, it: SubscriberStatistics) -> tuple[int | str, ...]:
    sizes, latency = it.proof_bytes, it.latency_blocks
    return (
        str(ParaId(para_id)),
        len(it.points),
        it.callbacks,
        sizes.p50,
        sizes.p99,
        sizes.max,
        it.static_bytes.p50,
        it.own_bytes.p50,
        latency.told("p50", "p99"),
    )


def _median(it: SubscriberStatistics) -> list[Part]:
    static, proof = it.static_bytes.p50, it.proof_bytes.p50
    sizes = {"static": static, "pub-sub": max(0, proof - static), "own": it.own_bytes.p50}
    return [(name, size, COLOURS[name]) for name, size in sizes.items()]
