"""Real runtimes in the report and on the terminal: what their blocks carry, by pallet and storage item.

Law: the parts add up. The bytes of all storage items are those of the own proofs, and every cut says what it left out.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from relaycast.report.charts import COLOURS, Series, across, band_chart, banded
from relaycast.report.templates import percent
from relaycast.terminal import counted
from relaycast_ledger.outcome import ItemCost, Outcome, RuntimeOutcome, RuntimePoint

MAX_ITEMS = 60
"""Storage items of one runtime that the page names; the others are one row."""

MAX_NAMED = 3
"""Storage items that a sentence names."""

MAX_LINES = 6
PART_NAMES = ("relay proof", "own state", "extrinsics, header and lengths")
PART_STYLES = ("given", "own", "rest")


class ItemRow(NamedTuple):
    """One storage item, or what is left of them together; ``width`` is in percent of the largest."""

    name: str
    blocks: int
    reads: int
    writes: int
    proof_bytes: int
    bytes_a_block: float
    part: float
    width: float


class PalletRow(NamedTuple):
    """The storage items of one pallet together."""

    pallet: str
    proof_bytes: int
    part: float
    width: float


class RuntimeSection(NamedTuple):
    """One runtime as the page shows it; ``parts`` are style, meaning, bytes and percent of the median block's bar."""

    title: str
    it: RuntimeOutcome
    parts: tuple[tuple[str, str, int, float], ...]
    pallets: tuple[PalletRow, ...]
    items: tuple[ItemRow, ...]
    total: ItemRow


def title_of(it: RuntimeOutcome) -> str:
    """Return how a parachain with a real runtime is called."""
    return f"{it.para_id} {it.name or it.spec_name}".strip()


def runtime_views(run: Outcome) -> list[RuntimeSection]:
    """Return what the page shows of each runtime."""
    return [_view(it, run.runtime_series.get(it.para_id, ())) for it in run.runtimes]


def pallets_of(it: RuntimeOutcome) -> list[PalletRow]:
    """Return the bytes of own proofs by pallet, the largest first; they add up."""
    sums: dict[str, int] = {}
    for item in it.by_item:
        sums[item.pallet] = sums.get(item.pallet, 0) + item.proof_bytes
    total, largest = sum(sums.values()) or 1, max(sums.values(), default=0) or 1
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    return [PalletRow(name or "-", size, size / total, round(100 * size / largest, 2)) for name, size in ordered]


def items_of(it: RuntimeOutcome, *, most: int = MAX_ITEMS) -> list[ItemRow]:
    """Return the storage items with most bytes, and one row of the others where there are more."""
    shown, others = it.by_item[:most], it.by_item[most:]
    rows = [_row(item, it) for item in shown]
    return [*rows, _together(f"{len(others)} other items", others, it)] if others else rows


def runtime_sentences(run: Outcome) -> Iterator[str]:
    """Say of each runtime what it built, and what its blocks carry."""
    for it in run.runtimes:
        text = (
            f"{title_of(it)} built {counted(it.blocks, 'block')} of {it.spec_name} {it.spec_version} with "
            f"{counted(it.extrinsics, 'extrinsic')}"
        )
        wrong = [
            (it.failed_extrinsics, "failed"),
            (it.left_out, "was left out" if it.left_out == 1 else "were left out"),
            (it.waiting, "waits for a later block" if it.waiting == 1 else "wait for a later block"),
            (it.refused_blocks, "refused"),
        ]
        said = [
            f"{counted(count, 'block')} {what}" if what == "refused" else f"{count:,} {what}"
            for count, what in wrong
            if count
        ]
        yield f"{'; '.join([text, *said])}."


def cost_sentence(it: RuntimeOutcome) -> str:
    """Return what a block of a runtime carries."""
    if not it.blocks:
        return f"Runtime: no block of {title_of(it)} was built."
    named = [
        f"{item.name} {item.proof_bytes / it.own_proof_bytes.total:.0%}"
        for item in it.by_item[:MAX_NAMED]
        if item.proof_bytes and it.own_proof_bytes.total
    ]
    most = f" Of its own state most is of {', '.join(named)}." if named else ""
    return (
        f"Runtime: a block of {title_of(it)} carries {it.pov_bytes.p50:,} bytes in the median, {it.pov_bytes.max:,} at "
        f"most ({percent(it.pov_share.max)} of the largest PoV): the relay proof has {it.relay_proof_bytes.p50:,} in "
        f"the median, its own state {it.own_compact_bytes.p50:,} as a compact proof ({it.own_proof_bytes.p50:,} as "
        f"whole nodes).{most}"
    )


def cost_summary(it: RuntimeOutcome) -> str:
    """Return in one sentence what a block of a runtime carries."""
    if not it.blocks:
        return f"{title_of(it)} built no block."
    most = f"at most {percent(it.pov_share.max)} of the largest PoV"
    return f"A block of {title_of(it)} carries {it.pov_bytes.p50:,} bytes in the median, {most}."


def proof_lines(run: Outcome) -> str:
    """Return the chart of own proofs over the relay blocks, a line for each runtime."""
    series = [Series(title_of(it), _line(run.runtime_series.get(it.para_id, ()))) for it in run.runtimes]
    bands = [across("all runtimes", series)] if len(series) > MAX_LINES else [banded(line) for line in series]
    label = "Bytes of own state in each block of a real runtime over the relay blocks"
    return band_chart(bands, unit="own proof bytes", x_name="relay block", label=label)


def legend(run: Outcome) -> list[tuple[str, str]]:
    """Return names and colours of the lines."""
    if len(run.runtimes) > MAX_LINES:
        return [(f"all {len(run.runtimes)} runtimes: lowest, median and highest", COLOURS[0])]
    return [(title_of(it), COLOURS[index]) for index, it in enumerate(run.runtimes)]


def _line(points: Sequence[RuntimePoint]) -> Sequence[tuple[int, int]]:
    return [(point.block, point.own_proof_bytes) for point in points]


def _view(it: RuntimeOutcome, points: Sequence[RuntimePoint]) -> RuntimeSection:
    return RuntimeSection(
        title_of(it),
        it,
        tuple(_parts(points)),
        tuple(pallets_of(it)),
        tuple(items_of(it)),
        _together("all items", it.by_item, it),
    )


def _parts(points: Sequence[RuntimePoint]) -> Iterator[tuple[str, str, int, float]]:
    """Yield the parts of the first block with the median of what blocks carry; they add up to it."""
    ordered = sorted(points, key=lambda point: point.pov_bytes)
    if not ordered:
        return
    median = ordered[(len(ordered) - 1) // 2]
    sizes = [median.carried_relay_bytes, median.own_compact_bytes]
    sizes.append(median.pov_bytes - sum(sizes))
    for style, name, size in zip(PART_STYLES, PART_NAMES, sizes, strict=True):
        yield style, name, size, round(100 * size / (median.pov_bytes or 1), 2)


def _row(item: ItemCost, of: RuntimeOutcome) -> ItemRow:
    return _together(item.name or "-", [item], of, blocks=item.blocks)


def _together(name: str, items: Sequence[ItemCost], of: RuntimeOutcome, *, blocks: int | None = None) -> ItemRow:
    size = sum(item.proof_bytes for item in items)
    largest = max((item.proof_bytes for item in of.by_item), default=0) or 1
    return ItemRow(
        name,
        of.blocks if blocks is None else blocks,
        sum(item.reads for item in items),
        sum(item.writes for item in items),
        size,
        size / (of.blocks or 1),
        size / (of.own_proof_bytes.total or 1),
        round(min(100.0, 100 * size / largest), 2),
    )
