"""The comparison of two designs as a page: what differs in words, then charts on common scales, then figures."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaycast.compare.comparison import Compared
from relaycast.compare.rows import (
    broken_lines,
    choice_rows,
    figure_rows,
    left_out,
    oversize_lines,
    scenario_rows,
    starved_lines,
    verdict,
)
from relaycast.report.charts import nice_ceiling
from relaycast.report.full_block import MEANINGS
from relaycast.report.page import (
    BAR_KEYS,
    CostBar,
    cost_bars,
    latency_chart,
    proof_chart,
    reader_legend,
    stack,
    stack_keys,
)
from relaycast.report.story import why
from relaycast.report.templates import own_markup, render
from relaycast.report.verdicts import title
from relaycast_ledger.outcome import Outcome, SubscriberOutcome

if TYPE_CHECKING:
    from markupsafe import Markup

MAX_READERS = 50
"""Readers with a table of their own."""

MAX_STACKS = 4
SIDES = ("first", "second")


@dataclass(frozen=True, slots=True)
class ReaderRows:
    """A reader's figures side by side; ``signs`` says of each row whether more is worse, better or neither."""

    name: str
    rows: tuple[tuple[tuple[str, ...], str], ...]
    left_out: str


def render_comparison(compared: Compared) -> str:
    """Return the page of two designs."""
    comparison, runs = compared.comparison, compared.runs
    designs = (comparison.first, comparison.second)
    para_ids = list(comparison.names)
    return render(
        "comparison.html.j2",
        comparison=comparison,
        designs=list(zip(SIDES, designs, runs, strict=True)),
        verdict=verdict(comparison),
        choices=choice_rows(*(scenario.policies for scenario in compared.scenarios)),
        differences=scenario_rows(*compared.scenarios),
        reasons=[(side, why(run)) for side, run in zip(SIDES, runs, strict=True)],
        bars=_bars(runs),
        legend=[reader_legend(run) for run in runs],
        proofs=[own_markup(chart) for chart in _on_one_scale(runs)],
        latencies=[own_markup(latency_chart(run)) for run in runs],
        stacks=_stacks(runs),
        bar_keys=BAR_KEYS,
        meanings=MEANINGS,
        broken=[line for side, design in zip(SIDES, designs, strict=True) for line in broken_lines(side, design)],
        unfit=[
            line
            for side, design in zip(SIDES, designs, strict=True)
            for line in (*oversize_lines(side, design), *starved_lines(side, design))
        ],
        readers=[_reader(compared, para_id) for para_id in para_ids[:MAX_READERS]],
        more_readers=max(0, len(para_ids) - MAX_READERS),
        longest=max(len(points) for run in runs for points in run.series.values()),
    )


def _reader(compared: Compared, para_id: int) -> ReaderRows:
    first, second = (it.subscribers.get(para_id) for it in (compared.comparison.first, compared.comparison.second))
    name = f"{para_id} {compared.comparison.names[para_id]}".rstrip()
    rows = tuple((row, _sign(row)) for row in figure_rows(first, second))
    return ReaderRows(name, rows, left_out(first, second))


def _sign(row: tuple[str, ...]) -> str:
    """Return whether a difference is for the worse (``up``) or for the better; of callbacks it is neither."""
    if not row[3] or row[0] == "callbacks":
        return ""
    return "up" if row[3].startswith("+") else "down"


def _bars(runs: tuple[Outcome, Outcome]) -> list[tuple[str, CostBar]]:
    """Return the bars of both designs reader by reader, to one scale."""
    found = [cost_bars(run) for run in runs]
    longest = max((bar.total for bars in found for bar in bars), default=0) or 1
    scaled = [{bar.name: bar.scaled(longest) for bar in bars} for bars in found]
    names = list(dict.fromkeys(name for bars in scaled for name in bars))
    return [(side, bars[name]) for name in names for side, bars in zip(SIDES, scaled, strict=True) if name in bars]


def _on_one_scale(runs: tuple[Outcome, Outcome]) -> list[str]:
    highest = max((point.proof_bytes for run in runs for points in run.series.values() for point in points), default=0)
    return [proof_chart(run, top=nice_ceiling(highest)) for run in runs]


def _stacks(runs: tuple[Outcome, Outcome]) -> list[tuple[str, list["Markup"], list[tuple[str, str]]]]:
    """Return the largest readers' stacks side by side, each pair on one scale."""
    second = {it.para_id: it for it in runs[1].subscribers}
    both = [it for it in runs[0].subscribers if it.para_id in second]
    both.sort(key=lambda it: -max(it.proof_bytes.total, second[it.para_id].proof_bytes.total))
    pairs = []
    for it in both[:MAX_STACKS]:
        sides: tuple[SubscriberOutcome, SubscriberOutcome] = (it, second[it.para_id])
        top = nice_ceiling(max(side.proof_bytes.max for side in sides))
        charts = [own_markup(stack(run, side, top=top)) for run, side in zip(runs, sides, strict=True)]
        pairs.append((title(it), charts, stack_keys(*zip(runs, sides, strict=True))))
    return pairs
