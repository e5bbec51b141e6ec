"""The budget curve as a page, and as a picture of its own."""

from relaycast.budget.search import BudgetCurve, BudgetPoint
from relaycast.report.charts import Series, band_chart, banded
from relaycast.report.templates import own_markup, render
from relaycast.terminal import counted

COLUMNS = ("budget", "callbacks", "overtaken", "lost", "cut short", "latency p99", "")
"""Bytes of one block; values of all readers together; blocks whose budget ended before all was read; relay blocks."""


def budget_chart(curve: BudgetCurve) -> str:
    """Return how many values are overtaken and lost with each budget, as SVG."""
    overtaken = [(it.budget_bytes, it.overtaken) for it in _shown(curve)]
    lost = [(it.budget_bytes, it.lost) for it in _shown(curve)]
    series = [Series("overtaken", overtaken), Series("lost", lost)]
    label = "Values that are overtaken and lost, by the bytes of the budget"
    return band_chart([banded(line) for line in series], unit="values", x_name="bytes of the budget", label=label)


def rows(curve: BudgetCurve) -> list[tuple[str, ...]]:
    """Return a row of ``COLUMNS`` for each budget that was tried."""
    return [_row(curve, it) for it in curve.points]


def sentence(curve: BudgetCurve) -> str:
    """Return which budgets do, in words."""
    if curve.nothing_lost is None:
        return f"With the scenario's own budget of {curve.allowed_bytes:,} bytes some values never arrive."
    arriving = f"With {curve.nothing_lost:,} bytes in a block nothing is lost"
    every_key = "the newest value of every key arrives, sooner or later"
    if curve.nothing_overtaken is None:
        text = f"{arriving}: {every_key}. No budget up to the scenario's own lets every value arrive"
    elif curve.nothing_overtaken == curve.nothing_lost:
        text = f"{arriving} and nothing is overtaken"
    else:
        text = f"{arriving}: {every_key}. From {curve.nothing_overtaken:,} bytes on nothing is overtaken either"
    if curve.unavoidable:
        text += f", but for {counted(curve.unavoidable, 'value')} that the scenario's own budget cannot save"
    return f"{text}. Found in {curve.runs} runs, to 1%; the scenario's own budget is {curve.allowed_bytes:,} bytes."


def render_budget(curve: BudgetCurve) -> str:
    """Return the page of a curve."""
    return render(
        "budget.html.j2",
        curve=curve,
        sentence=sentence(curve),
        chart=own_markup(budget_chart(curve)),
        columns=COLUMNS,
        rows=rows(curve),
    )


def _shown(curve: BudgetCurve) -> list[BudgetPoint]:
    """Return the points up to a little beyond the smallest budget with which nothing is overtaken."""
    most = 1.5 * (curve.nothing_overtaken or curve.allowed_bytes)
    return [it for it in curve.points if it.budget_bytes <= most] or curve.points


def _row(curve: BudgetCurve, it: BudgetPoint) -> tuple[str, ...]:
    marks = []
    if it.budget_bytes == curve.nothing_lost:
        marks.append("nothing is lost")
    if it.budget_bytes == curve.nothing_overtaken:
        marks.append("nothing more is overtaken" if curve.unavoidable else "nothing is overtaken")
    if it.oversize_blocks:
        marks.append(f"{it.oversize_blocks:,} blocks do not fit")
    numbers = (it.budget_bytes, it.callbacks, it.overtaken, it.lost, it.incomplete_blocks)
    latency = "-" if it.latency_p99 is None else f"{it.latency_p99:,}"
    return (*(f"{number:,}" for number in numbers), latency, ", ".join(marks))
