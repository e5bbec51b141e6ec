"""``report.html``: one file that a person reads, without a network; all of it can be read without a script."""

from array import array
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from relaycast.report.charts import COLOURS, Series, across, band_chart, banded, bar_chart, stacked_chart
from relaycast.report.full_block import MEANINGS
from relaycast.report.pictures import block_views
from relaycast.report.runtimes import cost_sentence, proof_lines, runtime_sentences, runtime_views
from relaycast.report.runtimes import legend as runtime_legend
from relaycast.report.start_up import start_up, start_up_of
from relaycast.report.story import pruned_bytes, story, why
from relaycast.report.templates import own_markup, percent, render
from relaycast.report.trie_view import CAUSES
from relaycast.report.upgrades import upgrade_marks, upgrade_rows
from relaycast.report.verdicts import Severity, by_cause, largest, median_block, title, verdicts
from relaycast.scenario.scenario import Scenario
from relaycast.terminal import counted
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_ledger.outcome import KeyCost, Outcome, Point, PublisherCost, SubscriberOutcome, rank
from relaycast_ledger.run_statistics import Line

STACKED = ("static", *IN_THE_PROOF)
"""What bytes of a proof are for, from the bottom of a chart to its top."""

STACK_COLOURS = tuple(f"var(--{cause})" for cause in STACKED)

MAX_LINES = 6
"""Readers that get a line of their own; more are one band."""

MAX_STACKS = 6
"""Readers that get a chart of their own: the largest."""

MAX_BARS = 10

PRINTED_ROWS = 20
"""Rows of a table that paper shows: the costliest."""

MAX_TABLE_ROWS = 300
MAX_KEYS = 250
MAX_LATENCIES = 40
"""Bars of latencies; more are put together."""

STYLES = {"pubsub": "given"}
"""Causes that go by another name in the style sheet."""

BAR_KEYS = (*STACKED, "own", "messages", "rest")
"""What bars are made of, from left to right."""

X_NAME = "relay block"
CHARGED = "Bytes that each pass was charged over the relay blocks"


class CostBar(Struct, frozen=True):
    """What a reader's median block carries: bytes by cause, in percent of the longest bar."""

    name: str
    parts: tuple[tuple[str, int, float], ...]
    total: int
    block: int
    is_oversize: bool = False

    def scaled(self, longest: int) -> "CostBar":
        """Return the bar in percent of another one that carries ``longest`` bytes."""
        parts = tuple((style, size, round(100 * size / longest, 2)) for style, size, _ in self.parts)
        return CostBar(self.name, parts, self.total, self.block, self.is_oversize)


def render_report(run: Outcome, scenario: Scenario) -> str:
    """Return the page for ``run``."""
    costs = [(title(it), cost) for it in run.subscribers for cost in it.publishers]
    costs.sort(key=lambda item: -item[1].proof_bytes)
    readers = sorted(run.subscribers, key=lambda it: -it.pov_bytes.p99)
    views, charged, found = block_views(run), budget_lines(run), verdicts(run)
    return render(
        "report.html.j2",
        run=run,
        story=story(run),
        why=why(run),
        verdicts=found,
        is_bad=not run.invariants.ok or any(it.ending is Severity.BAD for it in found),
        readers=readers,
        publishers=sorted(run.publishers, key=lambda it: -it.value_bytes),
        printed=PRINTED_ROWS,
        has_start_up=start_up(run) is not None,
        upgrades=upgrade_rows(run),
        bar_keys=BAR_KEYS,
        parts=tuple(run.subscribers[0].pov_parts) if run.subscribers else (),
        meanings=MEANINGS,
        cards=_cards(run) if run.subscribers else [],
        bars=cost_bars(run),
        legend=reader_legend(run),
        runtime_sentences=[*runtime_sentences(run), *map(cost_sentence, run.runtimes)],
        runtime_views=runtime_views(run),
        runtime_chart=own_markup(proof_lines(run)) if run.runtimes else "",
        runtime_legend=runtime_legend(run),
        proof_chart=own_markup(proof_chart(run)),
        budget_chart=own_markup(_lines(charged, unit="bytes charged", label=CHARGED, run=run)),
        budget_legend=_legend(list(charged), run),
        latency_chart=own_markup(latency_chart(run)),
        stacks=[(title(it), own_markup(stack(run, it)), stack_keys((run, it))) for it in _largest(run)],
        budgets=[(title(it), _budget_use(run.series[it.para_id]), it) for it in readers[:MAX_TABLE_ROWS]],
        formula=_formula,
        costs=costs[:MAX_TABLE_ROWS],
        more_costs=max(0, len(costs) - MAX_TABLE_ROWS),
        most=MAX_TABLE_ROWS,
        in_the_proof=IN_THE_PROOF,
        views=views,
        keys=_keys(run)[:MAX_KEYS],
        more_keys=max(0, sum(map(len, run.keys.values())) - MAX_KEYS),
        has_key_bytes=any(it.proof_bytes for costs in run.keys.values() for it in costs),
        pruned=pruned_bytes,
        has_formula=any(it.formula_bytes is not None for _, it in costs),
        has_messages=any(it.message_bytes.max or it.waiting_bytes_max for it in run.subscribers),
        has_refused=any(it.refused_bytes for it in run.subscribers),
        longest=max((len(points) for points in run.series.values()), default=0),
        scenario=msgspec.json.format(msgspec.json.encode(scenario), indent=2).decode(),
    )


def reader_legend(run: Outcome) -> list[tuple[str, str]]:
    """Return the names and colours of the lines in ``proof_chart``."""
    return _legend([title(it) for it in run.subscribers], run)


def _legend(names: list[str], run: Outcome) -> list[tuple[str, str]]:
    if len(names) > MAX_LINES:
        return [(f"all {len(run.subscribers)} readers: lowest, median and highest", COLOURS[0])]
    return [(name, COLOURS[index]) for index, name in enumerate(names)]


def proof_chart(run: Outcome, *, top: int | None = None) -> str:
    """Return the proof of each reader over the blocks."""
    lines = {title(it): Line.of(run.series[it.para_id], "proof_bytes") for it in run.subscribers}
    label = "Proof bytes of each subscriber over the relay blocks"
    return _lines(lines, unit="proof bytes", label=label, top=top, run=run)


def budget_lines(run: Outcome) -> dict[str, Sequence[tuple[int, int]]]:
    """Return what each reader's passes were charged, and of few readers that were cut short the budgets as well.

    A budget is drawn where it is within the scale of what was charged.
    """
    lines: dict[str, Sequence[tuple[int, int]]]
    lines = {title(it): Line.of(run.series[it.para_id], "metered_bytes") for it in run.subscribers}
    highest = max((charged for points in lines.values() for _, charged in points), default=0)
    for it in run.subscribers if len(run.subscribers) <= MAX_LINES // 2 else ():
        if it.incomplete_blocks:
            budgets = [(point.block, min(point.budget_bytes, highest)) for point in run.series[it.para_id]]
            lines[f"budget of {title(it)}, where it is below the highest charge"] = budgets
    return lines


def latency_chart(run: Outcome) -> str:
    """Return how many blocks deliveries took, by reader where they are few."""
    groups: Mapping[str, Mapping[int, int]] = {title(it): run.latencies[it.para_id] for it in run.subscribers}
    if len(groups) > MAX_LINES:
        together: dict[int, int] = {}
        for counts in groups.values():
            for value, count in counts.items():
                together[value] = together.get(value, 0) + count
        groups = {"all readers": together}
    highest = max((value for counts in groups.values() for value in counts), default=0)
    step = -(-(highest + 1) // MAX_LATENCIES)
    if step > 1:
        groups = {name: _bucketed(counts, step) for name, counts in groups.items()}
    label = "How many relay blocks deliveries took"
    return bar_chart(groups, unit="deliveries", x_name="relay blocks", label=label, step=step)


def stack(run: Outcome, subscriber: SubscriberOutcome, *, top: int | None = None) -> str:
    """Return a reader's proof over the blocks by cause."""
    blocks, sizes = array("q"), [array("q") for _ in STACKED]
    for point in run.series[subscriber.para_id]:
        if point.by_cause:
            blocks.append(point.block)
            for size, layer in zip((point.static_bytes, *point.by_cause), sizes, strict=True):
                layer.append(size)
    layers = [Series(cause, Line(blocks, layer)) for cause, layer in zip(STACKED, sizes, strict=True)]
    label = f"Proof bytes of {title(subscriber)} over the relay blocks, by cause"
    shaded = start_up_of(run.series[subscriber.para_id])
    return stacked_chart(
        layers, unit="proof bytes", x_name=X_NAME, label=label, colours=STACK_COLOURS, top=top, shaded=shaded
    )


def stack_keys(*sides: tuple[Outcome, SubscriberOutcome]) -> list[tuple[str, str]]:
    """Return the causes that the stacks of ``sides`` show, with their meanings, from the bottom to the top."""
    sums = dict.fromkeys(STACKED, 0)
    for run, subscriber in sides:
        for point in run.series[subscriber.para_id]:
            for cause, size in zip(STACKED, (point.static_bytes, *point.by_cause), strict=False):
                sums[cause] += size
    return [(cause, CAUSES[cause]) for cause, size in sums.items() if size]


def cost_bars(run: Outcome, *, most: int = MAX_BARS) -> list[CostBar]:
    """Return what a median block carries, of the readers whose blocks carry most."""
    found = [(it, median_block(run.series[it.para_id])) for it in run.subscribers]
    known = [(it, point) for it, point in found if point is not None]
    known.sort(key=lambda item: -item[1].pov_bytes)
    longest = max((point.pov_bytes for _, point in known), default=0) or 1
    bars = []
    for it, point in known[:most]:
        sizes = ((STYLES.get(cause, cause), size) for cause, size in by_cause(point).items())
        parts = tuple((style, size, round(100 * size / longest, 2)) for style, size in sizes)
        bars.append(CostBar(title(it), parts, point.pov_bytes, point.block, it.oversize_blocks > 0))
    return bars


def _median(sizes: list[int]) -> int:
    return rank(sorted(sizes), 50)


def _lines(
    lines: Mapping[str, Sequence[tuple[int, int]]],
    *,
    unit: str,
    label: str,
    run: Outcome,
    top: int | None = None,
) -> str:
    series = [Series(name, points) for name, points in lines.items()]
    bands = [across("all readers", series)] if len(series) > MAX_LINES else [banded(line) for line in series]
    return band_chart(
        bands, unit=unit, x_name=X_NAME, label=label, top=top, marks=upgrade_marks(run), shaded=start_up(run)
    )


def _bucketed(counts: Mapping[int, int], step: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for value, count in counts.items():
        first = value // step * step
        found[first] = found.get(first, 0) + count
    return found


def _budget_use(points: Sequence[Point]) -> dict[str, int | float]:
    """Return the budget of a reader's blocks, and how much of it passes were charged."""
    charged = sorted(point.metered_bytes for point in points)
    parts = sorted(point.metered_bytes / point.budget_bytes for point in points if point.budget_bytes)
    return {
        "least": min((point.budget_bytes for point in points), default=0),
        "p50": rank(charged, 50),
        "p99": rank(charged, 99),
        "max": rank(charged, 100),
        "part": parts[-1] if parts else 0.0,
    }


def _largest(run: Outcome) -> list[SubscriberOutcome]:
    """Return the subscribers with the largest proofs, in the order of the run."""
    ranked = sorted(run.subscribers, key=lambda it: -it.proof_bytes.total)[:MAX_STACKS]
    return [it for it in run.subscribers if it in ranked]


def _keys(run: Outcome) -> list[tuple[str, str, KeyCost]]:
    """Return every key with its reader and its name, the one with most bytes first."""
    found = [
        (title(it), run.key_names.get((cost.publisher, cost.key), ""), cost)
        for it in run.subscribers
        for cost in run.keys.get(it.para_id, [])
    ]
    return sorted(found, key=lambda item: (-item[2].proof_bytes, -item[2].callbacks))


def _formula(cost: PublisherCost) -> str:
    """Return how far the run is from what the closed form gives for a publisher."""
    measured = cost.proof_bytes - cost.by_cause["top"].node_bytes
    if cost.formula_bytes is None:
        return "-"
    return f"{measured / cost.formula_bytes - 1:+.1%}" if cost.formula_bytes else f"{measured:+,}"


def _cards(run: Outcome) -> list[dict[str, str]]:
    worst = largest(run)
    p99s = [it.latency_blocks.p99 for it in run.subscribers]
    slowest = max((blocks for blocks in p99s if blocks is not None), default=None)
    late = "no delivery" if slowest is None else counted(slowest, "block")
    cut = sum(it.incomplete_blocks for it in run.subscribers)
    points = run.series[worst.para_id]
    news = sum(point.callbacks > 0 for point in points)
    quiet = _median([it.proof_bytes - it.static_bytes for it in points if not it.callbacks])
    pubsub = _median([it.proof_bytes - it.static_bytes for it in points if it.callbacks])
    rest = f"; {quiet:,} B in the {len(points) - news:,} blocks without" if news < len(points) else ""
    return [
        *_oversize_card(run),
        *_starved_card(run),
        {"figure": f"{pubsub:,} B", "meaning": f"of relay proof when {title(worst)} is told something new{rest}"},
        {
            "figure": f"{_median([it.own_bytes for it in points if it.callbacks]):,} B",
            "meaning": "of nodes of its own state then, to keep the node cache",
        },
        {
            "figure": percent(worst.pov_share.p99),
            "meaning": f"of the largest PoV in all, p99; {percent(worst.compressed_share.p99)} compressed",
        },
        {"figure": late, "meaning": "from publication to delivery, p99 of the slowest reader"},
        {"figure": f"{cut:,} blocks", "meaning": "cut short: the budget ended before all was read"},
    ]


def _starved_card(run: Outcome) -> list[dict[str, str]]:
    if not run.starved:
        return []
    figure = counted(len(run.starved), "reader")
    return [{"figure": figure, "meaning": "starved: not given the values subscribed to", "style": "bad"}]


def _oversize_card(run: Outcome) -> list[dict[str, str]]:
    if not run.oversize_blocks:
        return []
    figure = counted(run.oversize_blocks, "block")
    return [{"figure": figure, "meaning": "too large or too slow: the relay chain would refuse them", "style": "bad"}]
