"""``report.html``: one file that a person reads, without a network and without a script."""

from importlib import resources

import msgspec
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from relaycast.charts import COLOURS, Series, bar_chart, line_chart, stacked_chart
from relaycast.outcome import Outcome, PublisherCost, SubscriberOutcome
from relaycast.scenario import Scenario
from relaycast_collator.account_records import IN_THE_PROOF

CAUSES = ("static", *IN_THE_PROOF)
"""What bytes of a proof are for, from the bottom of a chart to its top."""

CAUSE_COLOURS = (COLOURS[-1], *COLOURS[:-1])
"""What nobody can help is grey."""

MAX_STACKS = 12
"""Subscribers that get a chart of their own: the largest."""


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
        causes=list(zip(CAUSES, CAUSE_COLOURS, strict=True)),
        stacks=[(names[it.para_id], Markup(_stack(run, it, names[it.para_id]))) for it in _largest(run)],  # noqa: S704
        costs=[(names[it.para_id], cost) for it in run.subscribers for cost in it.publishers],
        pruned=pruned_bytes,
        scenario=msgspec.json.format(msgspec.json.encode(scenario), indent=2).decode(),
        number=lambda value: f"{value:,}",
        percent=percent,
    )


def title(subscriber: SubscriberOutcome) -> str:
    """Return how a subscriber is called in charts."""
    return f"{subscriber.para_id} {subscriber.name}".strip()


def pruned_bytes(cost: PublisherCost) -> int:
    """Return the bytes that were collected for a publisher and left out, for whatever reason."""
    return sum(totals.node_bytes for totals in cost.pruned.values())


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


def _largest(run: Outcome) -> list[SubscriberOutcome]:
    """Return the subscribers with the largest proofs, in the order of the run."""
    ranked = sorted(run.subscribers, key=lambda it: -it.proof_bytes.total)[:MAX_STACKS]
    return [it for it in run.subscribers if it in ranked]


def _stack(run: Outcome, subscriber: SubscriberOutcome, name: str) -> str:
    points = [point for point in run.series[subscriber.para_id] if point.by_cause]
    layers = [Series("static", [(point.block, point.static_bytes) for point in points])]
    for index, cause in enumerate(IN_THE_PROOF):
        layers.append(Series(cause, [(point.block, point.by_cause[index]) for point in points]))
    label = f"Proof bytes of {name} over the relay blocks, by cause"
    return stacked_chart(layers, unit="proof bytes", x_name="relay block", label=label, colours=CAUSE_COLOURS)


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
