"""The gallery: ``docs/gallery.md``, from what the presets say of themselves and the figures of a run of each.

Run as a program it writes the page; a test runs the presets again and keeps it fresh.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from relaycast.scenario.files import load_preset, runnable_presets
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Outcome, SubscriberOutcome

PAGE = Path(__file__).parents[1] / "gallery.md"

HEAD = """\
# Gallery

Scenarios that come with relaycast, each with what it shows. `relaycast demo heartbeats` runs one, `relaycast new mine
--from heartbeats` writes it as a file of your own, and a scenario that says `extends = "heartbeats"` stands on it. The
figures are those of the scenario as it is. Proofs are bytes of relay proof in a block of the reader. *News* is what
all proofs together take beyond the static keys that every parachain block proves.

Made by `.venv/bin/python docs/generators/gallery_page.py`; a test runs every scenario and holds the page against it.
"""

COLUMNS = (
    "reader",
    "keys",
    "blocks",
    "callbacks",
    "overtaken",
    "told again",
    "proof p50",
    "max",
    "news",
    "latency p50 / max",
    "cut short",
)


def outcome(name: str) -> Outcome:
    """Return what a preset comes to, as it stands."""
    scenario = load_preset(name)
    return Simulation.prepare(scenario).run()


def page(outcomes: Iterable[Outcome]) -> str:
    """Return the page of these runs."""
    return "\n".join([HEAD, *(line for run in outcomes for line in _section(run))])


def _section(run: Outcome) -> list[str]:
    rows = [_row(it) for it in run.subscribers]
    names = [re.sub(r"-\d+$", "", it.name) for it in run.subscribers]
    shown = [row for index, row in enumerate(rows) if index == 0 or names[index] != names[index - 1]]
    lines = [f"## {run.name}", "", run.description, ""]
    lines += [f"| {' | '.join(COLUMNS)} |", f"|---|{'--:|' * (len(COLUMNS) - 1)}"]
    lines += [f"| {' | '.join(row)} |" for row in shown]
    if len(shown) < len(rows):
        total = sum(it.proof_bytes.total for it in run.subscribers)
        lines += ["", f"{len(rows)} readers do the same: {total:,} bytes of relay proof together."]
    disabled = [f"{it.name} disables {publisher}" for it in run.subscribers for publisher in it.disabled_publishers]
    facts = [f"{run.blocks} relay blocks", f"{sum(it.published for it in run.publishers):,} publications", *disabled]
    return [*lines, "", f"{', '.join(facts)}.", ""]


def _row(it: SubscriberOutcome) -> tuple[str, ...]:
    news = it.proof_bytes.total - it.static_bytes.total
    figures = (
        it.keys,
        it.blocks,
        it.callbacks,
        it.deliveries - (it.callbacks - it.told_again),
        it.told_again,
        it.proof_bytes.p50,
        it.proof_bytes.max,
        news,
    )
    latency = f"{it.latency_blocks.p50} / {it.latency_blocks.max}"
    return f"{it.para_id} {it.name}", *(f"{figure:,}" for figure in figures), latency, f"{it.incomplete_blocks:,}"


if __name__ == "__main__":
    PAGE.write_text(page(map(outcome, runnable_presets())))
