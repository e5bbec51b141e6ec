"""How notebooks show blocks, deliveries and networks of chains."""

from collections import Counter

from relaycast.notebook.markup import Cell, Part, bar, card
from relaycast_collator.chains import ChainSimulator
from relaycast_collator.parachain import ParachainBlock
from relaycast_collator.relay_chain import RelayBlock
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_ledger.ledger import Ledger
from relaycast_ledger.records import BlockRecord, Delivery

COLOURS = {
    "static": "#868d99",
    "top": "#6a276c",
    "new": "#0090f5",
    "changed": "#d97700",
    "unseen": "#910004",
    "value": "#0e7462",
    "pub-sub": "#0090f5",
    "own": "#9843ba",
}
"""Colours of causes, as reports have them on light ground."""

DELIVERY_COLUMNS = ("publisher", "key", "value", "published at", "delivered at", "blocks", "overtaken")


def relay_block_card(block: RelayBlock) -> str:
    """Return a block of the relay chain, with what happened in it."""
    events = Counter(f"{event.pallet}.{type(event).__name__}" for event in block.events)
    facts: dict[str, Cell] = {"state root": block.state_root, "hash": block.hash, "messages": len(block.messages)}
    columns = ("event", "times") if events else ()
    return card(f"Relay block {block.number:,}", facts, columns=columns, rows=sorted(events.items()))


def parachain_block_card(block: ParachainBlock) -> str:
    """Return a parachain's block, with what it was given and what its subscriber was told."""
    proof, own = block.inherent.proof_bytes, block.own_proof.proof_bytes
    facts: dict[str, Cell] = {
        "hash": block.header.hash,
        "relay proof": f"{proof:,} bytes",
        "own state": f"{own:,} bytes",
    }
    rows: list[tuple[Cell, ...]] = [
        (str(publisher), bytes(key), entry.value) for publisher, key, entry in block.updates
    ]
    rows += [(str(publisher), bytes(key), "deleted") for publisher, key in block.deletions]
    columns = ("publisher", "key", "value") if rows else ()
    return card(f"Parachain block {block.header.number:,}", facts, columns=columns, rows=rows)


def block_record_card(record: BlockRecord) -> str:
    """Return what a subscriber's block took, by cause, and what it brought."""
    facts: dict[str, Cell] = {
        "relay parent": record.relay_parent,
        "proof": f"{record.proof_bytes:,} of {record.collected_bytes:,} bytes collected",
        "pass": "complete" if record.complete else "cut short",
        "callbacks": len(record.deliveries),
    }
    if record.deletions:
        facts["told as deleted"] = len(record.deletions)
    if record.panic is not None:
        facts["panic"] = record.panic
    rows = [_delivery_row(delivery) for delivery in record.deliveries]
    title = f"Block {record.number:,} of parachain {record.para_id}"
    return card(title, facts, columns=DELIVERY_COLUMNS if rows else (), rows=rows, figure=bar(_parts(record)))


def delivery_card(delivery: Delivery) -> str:
    """Return one callback."""
    return card("Delivery", {}, columns=DELIVERY_COLUMNS, rows=[_delivery_row(delivery)])


def ledger_card(ledger: Ledger) -> str:
    """Return what a ledger keeps, and whether the invariants held so far."""
    checks = ledger.invariants
    held = f"{checks.checked:,} checks held" if checks.ok else f"{checks.violated:,} violated"
    return card(f"Ledger at tick {ledger.chains.tick:,}", {"accounts": ledger.accounts.value, "invariants": held})


def chains_card(network: ChainSimulator) -> str:
    """Return all chains as they stand."""
    head = network.relay_chain.head
    rows = [
        (
            str(para_id),
            chain.head.number,
            len(chain.outbox),
            sum(map(len, chain.kept.wanted.values())),
            len(chain.kept.values),
        )
        for para_id, chain in network.parachains.items()
    ]
    facts: dict[str, Cell] = {"relay block": head.number, "state root": head.state_root}
    columns = ("parachain", "block", "values waiting", "keys subscribed", "values there")
    return card(f"Network at tick {network.tick:,}", facts, columns=columns, rows=rows)


def _parts(record: BlockRecord) -> list[Part]:
    """Return the proof by cause, as far as it is known, and the own state beside it."""
    sizes = {"static": record.static_bytes}
    if record.account is None:
        sizes["pub-sub"] = record.proof_bytes - record.static_bytes
    else:
        for cause in IN_THE_PROOF:
            sizes[cause] = sum(getattr(it, cause).node_bytes for it in record.account.publishers)
    sizes["own"] = record.own_bytes
    return [(name, size, COLOURS[name]) for name, size in sizes.items()]


def _delivery_row(delivery: Delivery) -> tuple[Cell, ...]:
    return (
        str(delivery.publisher),
        bytes(delivery.key),
        delivery.entry.value,
        delivery.published_at,
        delivery.delivered_at,
        delivery.latency_blocks,
        delivery.conflated,
    )
