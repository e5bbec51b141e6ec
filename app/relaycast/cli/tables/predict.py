"""A prediction on the terminal: what two kinds of blocks carry, what follows from it, and both in sentences.

Law: every figure is one of the JSON, or a sum of such.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from relaycast.predict.closed_forms import ValueBytes, inline_hint
from relaycast.report.templates import percent
from relaycast.terminal import console, counted, print_table

if TYPE_CHECKING:
    from relaycast.predict.block import Prediction
    from relaycast.predict.scenario import ReaderCost, SubscriptionCost

COLUMNS = ("", "every key\nnodes", "\nbytes", "what is new\nnodes", "\nbytes")

NOTES = (
    "every key: the first block, before the node cache is written; without a node cache every block with news",
    "what is new: with the node cache, every later block with news",
    "own state: as the compact proof that a block carries, without hashes that can be computed",
)

READER_COLUMNS = (
    "reader",
    "publisher",
    "keys\nread",
    "\nof",
    "new a\nblock",
    "every\nkey",
    "what\nis new",
    "cache\nupkeep",
    "\nsaves",
)
"""Bytes of the publisher's part in a block with news: proofs of every key and of what is new, and own state."""

MAX_READERS = 40
"""Readers that a terminal is shown."""

SMALL = 0.01
"""Share below which a difference is not given: formulas are not that precise."""

READER_NOTE = (
    "formulas, nothing was simulated: bytes of a block with news; averages are of all blocks, relay proof ({ground} "
    "relay chain) and own state together"
)

VALUES = ("", "value")

Measured = tuple[float, float] | None
"""Mean bytes of the full and the delta proof of exact tries, where they were built."""


def print_prediction(it: "Prediction", measured: Measured, tries: int, block_seconds: float) -> None:
    """Print a prediction: the tables, and the sentence last."""
    out = console()
    sizes = " / ".join(f"{size:,}" for size in it.value_bytes)
    elsewhere = f", {it.elsewhere:,} new elsewhere" if it.elsewhere else ""
    head = f"{it.subscribed:,} of {it.keys:,} keys, values of {sizes} bytes, {it.updated:,} new{elsewhere}"
    out.print(head, style="bold")
    out.print()
    print_table(out, COLUMNS, [*_publishers_part(it, measured), *_whole_blocks(it)], right=COLUMNS[1:])
    for note in NOTES:
        out.print(note)
    if measured is not None:
        out.print(f"measured: the mean of {counted(tries, 'exact trie')}; off: the formula beside it")
    out.print()
    print_table(out, VALUES, _values(it, block_seconds), right=VALUES[1:])
    out.print()
    hint = inline_hint(it.value_bytes)
    out.print(" ".join(filter(None, (sentence(it, block_seconds), hint))), markup=False)


def print_readers(readers: Sequence["ReaderCost"], sizes: Mapping[int, "ValueBytes"], ground: str) -> None:
    """Print what each reader of a scenario carries, its subscriptions first."""
    out = console()
    shown = readers[:MAX_READERS]
    rows = [_subscription_row(it, part) for it in shown for part in it.subscriptions]
    print_table(out, READER_COLUMNS, rows, right=READER_COLUMNS[2:])
    out.print()
    for it in shown:
        if it.subscriptions:
            out.print(_reader_sentence(it), markup=False)
    if len(readers) > len(shown):
        out.print(f"... and {len(readers) - len(shown)} more readers, all with --json")
    for line in [f"{_title(it)}: no formula for {reason}" for it in shown for reason in it.without_formula]:
        out.print(line, style="yellow", markup=False)
    for publisher, size in sizes.items():
        if hint := inline_hint(size):
            out.print(f"{publisher}: {hint}", markup=False)
    out.print()
    out.print(READER_NOTE.format(ground=ground))


def _title(it: "ReaderCost") -> str:
    return f"{it.para_id} {it.name}".strip()


def _subscription_row(it: "ReaderCost", part: "SubscriptionCost") -> tuple[str, ...]:
    figures = (part.subscribed, part.keys, part.updated, part.full_bytes, part.delta_bytes, part.upkeep_bytes)
    return _title(it), str(part.publisher), *(f"{figure:,}" for figure in figures), f"{part.saved_bytes:+,}"


def _reader_sentence(it: "ReaderCost") -> str:
    if abs(it.saved) < SMALL:
        verdict = "changes their size by less than 1%"
    else:
        verdict = f"makes them {abs(it.saved):.1%} {'smaller' if it.saved > 0 else 'larger'}"
    least = "at least " if it.without_formula else ""
    averages = f"{it.with_cache_bytes:,} bytes on average with the node cache, {it.without_cache_bytes:,} without it"
    return (
        f"{_title(it)}: the relay proof of its first block has {least}{it.first_proof_bytes:,} bytes. Later blocks "
        f"carry {averages}: the cache {verdict}."
    )


def sentence(it: "Prediction", block_seconds: float) -> str:
    """Return what a subscription costs and what fits, in words."""
    budget, ground = it.budget, it.ground
    everywhere = ground.static_bytes + ground.top_bytes
    proofs = (
        f"The relay proof of the first block has {it.first_block_bytes:,} bytes, that of a block with "
        f"{counted(it.updated, 'new key')} {it.block_bytes:,}"
    )
    proofs += f"; {everywhere:,} of each are static keys and the way to the publisher." if everywhere else "."
    keys = f"all {it.keys:,} keys" if budget.keys == it.keys else f"{budget.keys:,} of the {it.keys:,} keys"
    every = f"all {it.subscribed:,}" if budget.updated == it.subscribed else f"{budget.updated:,}"
    fits = (
        f"A budget of {budget.budget_bytes:,} bytes holds {keys} in the first block, and of the {it.subscribed:,} that "
        f"are read {every} may be new every {block_seconds:g} s."
    )
    return " ".join(filter(None, (proofs, _cache_sentence(it), fits)))


def _cache_sentence(it: "Prediction") -> str:
    cache = it.cache
    if not it.updated + it.elsewhere:
        return ""
    difference = abs(cache.without_cache_bytes - cache.with_cache_bytes)
    verdict = f"saves {difference:,} bytes" if cache.pays else f"costs {difference:,} bytes more than it saves"
    limit = f"pays up to {counted(cache.break_even_updated, 'new key')}"
    limit = limit if cache.break_even_updated else "never pays here"
    return f"The node cache {verdict} in such a block, its upkeep of {cache.upkeep_bytes:,} bytes included: it {limit}."


def _publishers_part(it: "Prediction", measured: Measured) -> Iterator[tuple[str, ...]]:
    """Yield what the publisher's part of both proofs is made of, row by row."""
    proofs, keys = (it.full, it.delta), (it.subscribed, it.updated)
    yield ("branches", *_pairs((f"{one.branches:,.1f}", f"{one.branch_bytes:,}") for one in proofs))
    yield ("leaves", *_pairs((f"{one.leaves:,}", f"{one.leaf_bytes:,}") for one in proofs))
    yield ("values outside", *_pairs((f"{one.values:,}", f"{one.value_bytes:,}") for one in proofs))
    yield ("publisher's part", *_pairs((f"{one.nodes:,.1f}", f"{one.proof_bytes:,}") for one in proofs))
    shares = (f"{one.proof_bytes / count:,.0f}" if count else "-" for one, count in zip(proofs, keys, strict=True))
    yield ("  a key", *_bytes(shares))
    if measured is not None:
        yield ("  measured", *_bytes(f"{size:,.0f}" for size in measured))
        sides = zip(proofs, measured, strict=True)
        yield ("  off", *_bytes(f"{one.proof_bytes / size - 1:+.1%}" if size else "" for one, size in sides))


def _whole_blocks(it: "Prediction") -> Iterator[tuple[str, ...]]:
    """Yield what blocks carry beside the publisher's part, and all of it together."""
    ground, proofs = it.ground, (it.first_block_bytes, it.block_bytes)
    own = (ground.own_bytes, ground.own_bytes + it.cache.upkeep_bytes)
    both = [proof + state for proof, state in zip(proofs, own, strict=True)]
    yield ("way to the publisher", *_bytes(f"{ground.top_bytes:,}" for _ in proofs))
    yield (f"static keys ({ground.name})", *_bytes(f"{ground.static_bytes:,}" for _ in proofs))
    yield ("relay proof", *_bytes(f"{size:,}" for size in proofs))
    yield ("own state", *_bytes(f"{size:,}" for size in own))
    yield ("relay proof and own state", *_bytes(f"{size:,}" for size in both))
    yield ("  of the budget", *_bytes(percent(size / it.budget.budget_bytes) for size in both))


def _values(it: "Prediction", block_seconds: float) -> Iterator[tuple[str, str]]:
    """Yield what follows for the budget and the node cache, row by row."""
    from relaycast.scenario.files import BLOCKS_TO_ARRIVE  # noqa: PLC0415 - nothing else here needs scenarios

    budget, cache = it.budget, it.cache
    yield "budget, bytes", f"{budget.budget_bytes:,}"
    yield f"keys that the first block holds, of {it.keys:,}", f"{budget.keys:,}"
    yield "the same, of a publisher that has no other keys", f"{budget.keys_alone:,}"
    yield f"new keys that a block holds, of {it.subscribed:,} read", f"{budget.updated:,}"
    yield f"updates a second, with a block every {block_seconds:g} s", f"{budget.updates_per_second:,.2f}"
    yield "relay blocks to delivery, with a block on each", f"{BLOCKS_TO_ARRIVE}"
    yield "node cache, nodes", f"{cache.nodes:,.0f}"
    yield "node cache, bytes of state", f"{cache.state_bytes:,}"
    yield "new keys up to which the node cache pays", f"{cache.break_even_updated:,}"


def _bytes(sizes: Iterable[str]) -> Iterator[str]:
    return _pairs(("", size) for size in sizes)


def _pairs(cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (cell for pair in cells for cell in pair)
