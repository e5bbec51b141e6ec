"""``report.html``: one file that a person reads, without a network and without a script."""

from importlib import resources

import msgspec
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from relaycast.charts import COLOURS, Series, bar_chart, line_chart
from relaycast.outcome import Outcome, SubscriberOutcome
from relaycast.scenario import Scenario


def render_report(run: Outcome, scenario: Scenario) -> str:
    """Return the page for ``run``."""
    names = {it.para_id: title(it) for it in run.subscribers}
    lines = [Series(names[para], [(point.block, point.proof_bytes) for point in run.series[para]]) for para in names]
    bars = {names[para]: run.latencies[para] for para in names}
    proof_chart = line_chart(
        lines, unit="proof bytes", x_name="relay block", label="Proof bytes of each subscriber over the relay blocks"
    )
    latency_chart = bar_chart(bars, unit="deliveries", x_name="relay blocks", label="How many blocks deliveries took")
    return _template().render(
        run=run,
        story=story(run),
        cards=_cards(run),
        legend=[(name, COLOURS[index % len(COLOURS)]) for index, name in enumerate(names.values())],
        proof_chart=Markup(proof_chart),  # noqa: S704 - our own SVG, its texts escaped
        latency_chart=Markup(latency_chart),  # noqa: S704
        scenario=msgspec.json.format(msgspec.json.encode(scenario), indent=2).decode(),
        number=lambda value: f"{value:,}",
        percent=percent,
    )


def title(subscriber: SubscriberOutcome) -> str:
    """Return how a subscriber is called in charts."""
    return f"{subscriber.para_id} {subscriber.name}".strip()


def percent(part: float) -> str:
    """Return a share of the PoV: with the digits that it takes to tell it from nothing."""
    return f"{part:.2%}" if part >= 0.0005 or part == 0 else f"{part:.4%}"


def story(run: Outcome) -> str:
    """Return what happened, in one paragraph."""
    minutes = run.blocks * run.block_seconds / 60
    published = sum(it.published for it in run.publishers)
    refused = sum(it.refused_messages for it in run.publishers)
    callbacks = sum(it.callbacks for it in run.subscribers)
    worst = max(run.subscribers, key=lambda it: it.proof_bytes.p99)
    text = (
        f"Over {run.blocks:,} relay blocks ({minutes:,.1f} minutes) {_parachains(len(run.publishers))} published "
        f"{published:,} values, and {_parachains(len(run.subscribers))} subscribed: {callbacks:,} callbacks. "
        f"The largest reader, {title(worst)}, brought {worst.proof_bytes.p50:,} bytes of relay proof along in its "
        f"median block, {worst.static_bytes.p50:,} of them for the keys that every parachain block proves, and "
        f"{worst.proof_bytes.p99:,} at the 99th percentile; with the {worst.own_bytes.p50:,} bytes of its own state "
        f"that the node cache takes, that is {percent(worst.pov_share.p99)} of what a block may carry."
    )
    return f"{text} The relay chain refused {refused:,} messages." if refused else text


def _parachains(count: int) -> str:
    return f"{count} parachain{'' if count == 1 else 's'}"


def _cards(run: Outcome) -> list[dict[str, str]]:
    worst = max(run.subscribers, key=lambda it: it.proof_bytes.p99)
    slowest = max(it.latency_blocks.p99 for it in run.subscribers)
    return [
        {"figure": f"{worst.proof_bytes.p50:,} B", "meaning": "proof in a median block of the largest reader"},
        {"figure": f"{worst.proof_bytes.p99:,} B", "meaning": "at the 99th percentile"},
        {"figure": percent(worst.pov_share.p99), "meaning": "of the PoV that a block may carry, p99"},
        {"figure": f"{slowest} blocks", "meaning": "from publication to delivery, p99"},
    ]


def _template() -> Template:
    source = (resources.files("relaycast") / "templates" / "report.html.j2").read_text("utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False).from_string(source)
