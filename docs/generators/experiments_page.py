"""The answers of the experiments: ``docs/experiments.md``, with charts and digests in ``docs/experiments/``.

Run as a program it runs the experiments that are named, or all, at both scales, and writes the page from what is on
record. A test runs the quick ones again and keeps page and record fresh; the slow suite runs the full ones but for the
four longest, which are long hauls.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from relaycast.experiments import REGISTRY, load, questions
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.chart_files import specification, svg_of
from relaycast.experiments.experiment import SEED, Result, Scale

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "experiments.md"
CHARTS = DOCS / "experiments"
RECORD = CHARTS / "results.json"

Record = dict[str, Any]

MOST_COLUMNS = 9
"""Values of x in a table: what a narrow screen shows without scrolling far."""

MOST_LINES = 14
"""A chart whose table would have more lines shows one of its panels."""

HEAD = """\
# Experiments

Each answer comes from a table that one command makes again, to the same bytes: `relaycast bench E1 E4` runs two,
`relaycast bench all` all of them, `--quick` smaller ones in seconds. A command writes a Parquet table, the chart as SVG
and HTML (which takes `pip install -e '.[experiments]'` in the clone), and the sentence. Bytes are exact, those of the
very nodes; what is modelled or assumed is said with each.

Made by `.venv/bin/python docs/generators/experiments_page.py`; tests run the experiments again and hold them against
the digests in `docs/experiments/results.json`.
"""


def on_record() -> Record:
    """Return what the last full runs came to, by experiment."""
    found: Record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def recorded(result: Result) -> Record:
    """Return what is kept of a result."""
    kept = {"digest": result.digest, "rows": len(result.rows)}
    return kept if result.experiment.measured else {**kept, "answer": result.answer}


def page() -> str:
    """Return the page, from the record."""
    record = on_record()
    lines = [HEAD, "| | question |", "|---|---|"]
    lines += [f"| [{name}](#{_anchor(name, question)}) | {question} |" for name, question in questions().items()]
    for name, question in questions().items():
        lines += _section(name, question, record[name])
    return "\n".join(lines) + "\n"


def _section(name: str, question: str, record: Record) -> list[str]:
    experiment, full = load(name), record["full"]
    lines = ["", f"## {name}: {question}", "", *told(full.get("answer") or record["answer"]), ""]
    lines += [f"![{record['title']}](experiments/{experiment.stem}.svg)", ""]
    lines += [*record["table"], ""] if "table" in record else []
    if experiment.first_cut:
        lines += [experiment.first_cut, ""]
    lines += [f"- {note}" for note in experiment.notes]
    columns = ", ".join(f"`{column}`" for column in experiment.row.__struct_fields__)
    lines += [
        f"- `relaycast bench {name} --seed {SEED}`: {full['rows']:,} rows of {columns}; digest `{full['digest']}`.",
    ]
    return lines


def table_of(chart: Chart) -> list[str]:
    """Return what a chart shows as a table in Markdown: a line for each of its series, a column for each of some x.

    Where that is too long it is the panel in the middle. Where series share few of their x, a line has the pairs.
    """
    axes, height = _axes_of_series(chart), _height(chart)
    series: dict[tuple[str, ...], dict[Any, float]] = {}
    for point in chart.points:
        if point[height.field] is not None:
            series.setdefault(tuple(str(point[axis.field]) for axis in axes), {})[point[chart.x.field]] = point[
                height.field
            ]
    names = sorted(series, key=lambda name: [_rank(axis, it) for axis, it in zip(axes, name, strict=True)])
    panels, titles, skipped, of = list(dict.fromkeys(name[0] for name in names)), [it.title for it in axes], 0, ""
    if len(names) > MOST_LINES and chart.panel is not None:
        names = [name for name in names if name[0] == panels[len(panels) // 2]]
        skipped, of = 1, f", {chart.panel.title} {names[0][0]}".replace(",  ", ", ")
    by = f", by {chart.x.title}" if chart.x.title else ""
    title = f"{height.title}{by}{of}"
    lines = {name[skipped:]: series[name] for name in names}
    return [f"{title[:1].upper()}{title[1:]}:", "", *_table(chart, titles[skipped:], lines)]


def _table(chart: Chart, titles: list[str], lines: dict[tuple[str, ...], dict[Any, float]]) -> list[str]:
    height = _height(chart)
    found = sorted({x for line in lines.values() for x in line}, key=lambda it: _rank(chart.x, it))
    if sum(map(len, lines.values())) < len(lines) * len(found) / 2:
        at = "" if chart.x.names else "at "
        rows = [
            [*name, "; ".join(f"{_said(height, line[x])} {at}{_said(chart.x, x)}" for x in found if x in line)]
            for name, line in lines.items()
        ]
        return _written([*titles, ""], rows, texts=len(titles) + 1)
    if chart.x.names and len(found) > MOST_COLUMNS:
        rows = [[str(x), *(_said(height, line.get(x)) for line in lines.values())] for x in found]
        return _written(["", *(" ".join(name) for name in lines)], rows, texts=1)
    columns = _spread(found, MOST_COLUMNS)
    rows = [[*name, *(_said(height, line.get(x)) for x in columns)] for name, line in lines.items()]
    return _written([*titles, *(_said(chart.x, x) for x in columns)], rows, texts=len(titles))


def _written(head: list[str], rows: list[list[str]], *, texts: int) -> list[str]:
    """Return a table whose first columns are ``texts``, the others numbers."""
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * texts}{'--:|' * (len(head) - texts)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _axes_of_series(chart: Chart) -> list[Axis]:
    if chart.mark == "cells":
        return [chart.y]
    return [axis for axis in (chart.panel, chart.colour, chart.dash) if axis is not None]


def _height(chart: Chart) -> Axis:
    """Return what the cells of a table hold: in a chart of cells their colour says it."""
    if chart.mark == "cells":
        assert chart.colour is not None
        return chart.colour
    return chart.y


def _rank(axis: Axis, it: Any) -> tuple[float, str]:
    """Return what sorts names as the axis has them, and else numbers by size, those in texts too."""
    if axis.order:
        return axis.order.index(it), ""
    try:
        return float(str(it).rstrip("%").replace(",", "")), ""
    except ValueError:
        return float("inf"), str(it)


def _spread(found: list[Any], most: int) -> list[Any]:
    """Return ``most`` of these, the first and the last among them, evenly."""
    if len(found) <= most:
        return found
    return [found[round(at * (len(found) - 1) / (most - 1))] for at in range(most)]


def _said(axis: Axis, it: Any) -> str:
    """Return a figure in three digits, or all that stand before the point."""
    if it is None:
        return ""
    if isinstance(it, str):
        return it
    if axis.percent:
        return f"{100 * it:.3g}%" if abs(it) < 10 else f"{100 * it:,.0f}%"
    return f"{it:,.0f}" if it == int(it) or abs(it) >= 100 else f"{it:.3g}"


def told(answer: str) -> list[str]:
    """Return the lines of an answer: one finding to quote, the others one by one, then the conditions."""
    sentence, conditions = _parted(answer.removesuffix("."))
    findings = re.split(r"; (?=[a-z])(?![^(]*\))", sentence)  # figures of one finding have semicolons, too
    first, *others = (f"{it[0].upper()}{it[1:]}." for it in findings)
    listed = ["", *(f"- {it}" for it in others)] if others else []
    return [f"> {first}", *listed, "", *_conditions(conditions)]


def _conditions(text: str) -> list[str]:
    """Return the conditions of an answer: a sentence, or a list where there are several."""
    several = re.split(r"; (?![^(]*\))", text)
    if len(several) == 1:
        return [f"Conditions: {text}."]
    return ["Conditions:", "", *(f"- {it[0].upper()}{it[1:]}." for it in several)]


def _parted(answer: str) -> tuple[str, str]:
    """Return an answer without the parentheses that it ends with, and what stands between them."""
    depth = 0
    for place in range(len(answer) - 1, 0, -1):
        depth += (answer[place] == ")") - (answer[place] == "(")
        if not depth:
            return answer[:place].rstrip(), answer[place + 1 : -1]
    raise ValueError(f"an answer ends with its conditions in parentheses, got {answer!r}")


def _anchor(name: str, question: str) -> str:
    """Return what a Markdown renderer makes of the heading."""
    words = f"{name} {question}".lower()
    return "-".join("".join(sign for sign in words if sign.isalnum() or sign in " -").split())


def main(names: list[str]) -> None:
    """Run experiments and write what they came to."""
    CHARTS.mkdir(exist_ok=True)
    for name in names or REGISTRY:
        experiment = load(name)
        full = experiment.run(Scale())
        quick = full if experiment.measured else experiment.run(Scale(quick=True))
        drawn = svg_of(specification(full.chart), label=full.chart.title)
        (CHARTS / f"{experiment.stem}.svg").write_text(drawn)
        entry = {"title": full.chart.title, "full": recorded(full), "quick": recorded(quick)}
        if experiment.measured:
            entry["answer"] = full.answer
        entry["table"] = table_of(full.chart)
        record = {**on_record(), name: entry}
        record = {known: record[known] for known in REGISTRY if known in record}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(f"{name}: {full.answer}", flush=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
