"""Charts as files: SVG for pages, HTML that shows values under the pointer, both in one file without a network.

Law: the same chart gives the same bytes, whatever was drawn before it in this process.
"""

import re
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from relaycast.experiments.chart import Axis, Chart
from relaycast_trie.extras import install_command

if TYPE_CHECKING:
    import altair as alt

MISSING = f"charts need altair and vl-convert-python: {install_command('experiments')}"

COLOURS = ("#e6007a", "#2f6fed", "#1b9e77", "#d98200", "#7b4fd0", "#4a5568", "#0e9aa7", "#a0522d")
"""The first is Polkadot's own; they can be told apart on white."""

PADDING: Any = {"left": 12, "top": 5, "bottom": 10, "right": 72}
"""Around a chart: a browser's letters may be wider than those that the room was measured with."""

NESTED_WIDTHS = (12.0, 8.0, 3.0, 1.4)
"""Widths of lines that may coincide, in the order in which they are drawn."""

_STROKES: Any = {"symbolType": "stroke", "labelExpr": "datum.label + (datum.index ? ', dashed' : ', solid')"}
"""How a legend shows dashes: in words, as their samples have no colour of their own."""

_NUMBERED = re.compile(r"\b(clip|gradient_)\d+\b")
"""Ids that count up with everything drawn in a process."""


def can_draw() -> bool:
    """Return whether the libraries are there."""
    from importlib.util import find_spec  # noqa: PLC0415

    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def specification(chart: Chart) -> dict[str, Any]:
    """Return the chart as Vega-Lite."""
    import altair as alt  # noqa: PLC0415 - slow to load, and an extra

    data = alt.InlineData(values=list(chart.points))
    base = alt.Chart() if chart.panel is not None else alt.Chart(data)
    drawn: Any = _marked(base, chart).encode(**_encodings(chart))
    if chart.mark == "cells":
        text = base.mark_text(fontSize=10).encode(
            **{name: it for name, it in _encodings(chart).items() if name in {"x", "y"}}, text=f"{_value(chart)}:Q"
        )
        drawn = alt.layer(drawn, text)
    if chart.rules:
        lines = alt.InlineData(values=[{"height": height, "label": label} for height, label in chart.rules])
        rule = alt.Chart(lines).mark_rule(strokeDash=[2, 3], color="#4a5568").encode(y="height:Q")
        label = (
            alt.Chart(lines)
            .mark_text(align="left", dx=4, dy=-5, color="#4a5568")
            .encode(x=alt.value(0), y="height:Q", text="label:N")
        )
        drawn = alt.layer(drawn, rule, label)
    drawn = drawn.properties(width=chart.width, height=chart.height)
    if chart.panel is not None:
        panel = alt.Column(f"{chart.panel.field}:N", title=chart.panel.title, sort=list(chart.panel.order) or None)
        drawn = drawn.facet(data=data, column=panel)
    drawn = drawn.properties(title=alt.TitleParams(chart.title, anchor="start"), padding=PADDING)
    drawn = drawn.configure(aria=False, font="sans-serif").configure_view(stroke=None).configure_legend(labelLimit=320)
    found: dict[str, Any] = drawn.to_dict()
    return found


def svg_of(specification: dict[str, Any], *, label: str) -> str:
    """Return the chart as SVG; ``label`` says in words what it shows, for those who cannot see it."""
    import vl_convert  # noqa: PLC0415

    drawn = vl_convert.vegalite_to_svg(specification)
    seen: dict[str, str] = {}
    same = _NUMBERED.sub(lambda found: seen.setdefault(found[0], f"{found[1]}{len(seen)}"), drawn)
    words = label.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return same.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1) + "\n"


def html_of(specification: dict[str, Any]) -> str:
    """Return a page with the chart and all scripts that it needs."""
    import vl_convert  # noqa: PLC0415

    page: str = vl_convert.vegalite_to_html(specification, bundle=True)
    return page


def _marked(base: "alt.Chart", chart: Chart) -> Any:
    if chart.mark == "line" and chart.nested:
        return base.mark_line(strokeJoin="round")
    if chart.mark == "line":
        return base.mark_line(point={"size": 28}, strokeWidth=1.8)
    return base.mark_bar() if chart.mark == "bar" else base.mark_rect()


def _encodings(chart: Chart) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415

    found: dict[str, Any] = {"x": alt.X(**_channel(chart.x, chart)), "y": alt.Y(**_channel(chart.y, chart))}
    shown = [chart.x, chart.y, chart.colour, chart.dash, chart.panel]
    found["tooltip"] = [_tip(axis) for axis in shown if axis is not None]
    colour = chart.colour
    if chart.mark == "cells":
        assert colour is not None, "cells are coloured by a value"
        scale = alt.Scale(scheme="lightgreyteal", type="symlog")
        found["color"] = alt.Color(f"{colour.field}:Q", title=colour.title, scale=scale)
    elif colour is not None:
        scale = alt.Scale(range=list(COLOURS))
        sort = list(colour.order) or None
        found["color"] = alt.Color(f"{colour.field}:N", title=colour.title, scale=scale, sort=sort)
        if chart.nested:
            widths = alt.Scale(
                type="ordinal", domain=list(colour.order), range=list(NESTED_WIDTHS[-len(colour.order) :])
            )
            found["strokeWidth"] = alt.StrokeWidth(f"{colour.field}:N", scale=widths, legend=None)
        if chart.mark == "bar":
            found["xOffset"] = alt.XOffset(f"{colour.field}:N", sort=sort)
    if chart.dash is not None:
        sort = list(chart.dash.order) or None
        found["strokeDash"] = alt.StrokeDash(
            f"{chart.dash.field}:N", title=chart.dash.title, sort=sort, legend=_STROKES
        )
    return found


def _channel(axis: Axis, chart: Chart) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415

    if axis.names:
        turned = alt.Axis(labelAngle=axis.angle, labelLimit=220)
        order = list(axis.order) or None
        return {"field": axis.field, "type": "nominal", "title": axis.title, "sort": order, "axis": turned}
    form = "~%" if axis.percent else "~s" if axis.log else ",~r"
    ticks = alt.Axis(format=form, labelOverlap="greedy", tickCount=6)
    scale = alt.Scale(zero=axis.zero)
    if axis.log:
        marks = _log_ticks([point[axis.field] for point in chart.points])
        scale = alt.Scale(type="log", domain=[marks[0], marks[-1]])
        ticks = alt.Axis(format=form, values=marks)
    if axis.log_from_zero:
        values = [point[axis.field] for point in chart.points]
        marks = [0.0, *_log_ticks([max(1.0, value) for value in values])]
        scale = alt.Scale(type="symlog", constant=1, domain=[0.0, marks[-1]])
        ticks = alt.Axis(labelExpr="datum.value ? format(datum.value, '~s') : '0'", values=marks)
    return {"field": axis.field, "type": "quantitative", "title": axis.title, "scale": scale, "axis": ticks}


def _log_ticks(values: "list[float]") -> list[float]:
    """Return powers of ten around ``values``, with 2 and 5 of each where there are few."""
    low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
    factors = (1, 2, 5) if high - low < 3 else (1,)
    return [*(factor * 10.0**power for power in range(low, high) for factor in factors), 10.0**high]


def _tip(axis: Axis) -> "alt.Tooltip":
    import altair as alt  # noqa: PLC0415

    return alt.Tooltip(field=axis.field, type="nominal" if axis.names else "quantitative", title=axis.title)


def _value(chart: Chart) -> str:
    assert chart.colour is not None
    return chart.colour.field
