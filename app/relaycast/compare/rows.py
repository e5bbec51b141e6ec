"""Two designs as rows: figures side by side with their difference, and what differs in words."""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType

from relaycast.compare.comparison import Comparison, Design, DesignFigures
from relaycast.report.full_block import fullest
from relaycast.report.verdicts import starved_line
from relaycast.scenario.policy_choice import KINDS, PolicyTable, names_of
from relaycast.scenario.scenario import Scenario
from relaycast.terminal import counted
from relaycast_ledger.outcome import Percentiles

COLUMNS = ("figure", "first", "second", "difference", "")

MAX_DIFFERENCES = 60
"""Places in two scenarios that are listed."""


def figure_rows(first: DesignFigures | None, second: DesignFigures | None) -> Iterator[tuple[str, ...]]:
    """Yield a row of ``COLUMNS`` for every figure of a subscriber that ``left_out`` does not name."""
    ours, theirs = _figures(first), _figures(second)
    for figure in {**ours, **theirs}:
        if ours.get(figure) or theirs.get(figure):
            yield _row(figure, ours.get(figure), theirs.get(figure))


def left_out(first: DesignFigures | None, second: DesignFigures | None) -> str:
    """Return a line that names the figures which are zero or absent on both sides; nothing where there are none."""
    ours, theirs = _figures(first), _figures(second)
    names = [
        figure.partition(",")[0].strip() for figure in ours or theirs if not (ours.get(figure) or theirs.get(figure))
    ]
    if not names:
        return ""
    sides = "both sides" if ours and theirs else "this side"
    return f"{counted(len(names), 'figure')} left out, zero or absent on {sides}: {', '.join(names)}"


def broken_lines(which: str, design: Design) -> Iterator[str]:
    """Yield a line for every invariant that a design violates."""
    for it in design.broken:
        where = f"from block {it.first_block} on, in {', '.join(map(str, it.subscribers))}"
        times = "once" if it.times == 1 else f"{it.times} times"
        yield f"{which}: violated {times}: {it.invariant} ({where})"


def oversize_lines(which: str, design: Design) -> Iterator[str]:
    """Yield a line for every subscriber some of whose blocks the relay chain would refuse."""
    for para_id, it in design.subscribers.items():
        if it.oversize_blocks and it.fullest_block is not None:
            blocks = f"{it.oversize_blocks:,} of {counted(it.blocks, 'block')} of {para_id} do not fit"
            yield f"{which}: {blocks}: {fullest(it.fullest_block)}"


def starved_lines(which: str, design: Design) -> Iterator[str]:
    """Yield a line for every subscriber that was not given what it subscribes to."""
    for para_id, it in design.subscribers.items():
        if it.starvation is not UNSET and it.starvation.is_starved:
            yield f"{which}: starved: {starved_line(str(para_id), it.starvation)}"


def choice_rows(first: PolicyTable, second: PolicyTable) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Return the kinds of policies that differ, with each side's name and what it means."""
    ours, theirs = names_of(first), names_of(second)
    return [
        (kind, (str(ours[kind]), meaning(kind, ours[kind])), (str(theirs[kind]), meaning(kind, theirs[kind])))
        for kind in ours
        if ours[kind] != theirs[kind]
    ]


def meaning(kind: str, name: str | int) -> str:
    """Return what a policy does, in a sentence."""
    if kind not in KINDS:
        return "bytes of the largest node that is kept"
    policy = KINDS[kind][str(name).partition(":")[0]].make
    return (policy.__doc__ or "").partition("\n")[0].replace("``", "")


def scenario_rows(first: Scenario, second: Scenario) -> list[tuple[str, str, str]]:
    """Return the places, but for policies, at which two scenarios differ, with what stands there."""
    ours, theirs = _flat(first), _flat(second)
    places = [place for place in {**ours, **theirs} if not place.startswith("policies.")]
    return [
        (place, ours.get(place, "-"), theirs.get(place, "-"))
        for place in places
        if ours.get(place) != theirs.get(place)
    ][:MAX_DIFFERENCES]


def verdict(comparison: Comparison) -> str:
    """Return what the second design makes of the reader that carries most, in a sentence or two."""
    first, second = comparison.first.subscribers, comparison.second.subscribers
    both = [para_id for para_id in first if para_id in second]
    if not both:
        return "No parachain subscribes in both."
    para_id = max(both, key=lambda it: first[it].pov_bytes.total)
    ours, theirs = first[para_id], second[para_id]
    name = f"{para_id} {comparison.names.get(para_id, '')}".rstrip()
    text = (
        f"With the second design, the blocks of {name} carry {_change(ours.pov_bytes, theirs.pov_bytes)} over the "
        f"whole run, before compression. Of the nodes in them, relay proofs have "
        f"{_change(ours.proof_bytes, theirs.proof_bytes)} and own state "
        f"{_change(ours.own_bytes, theirs.own_bytes)}."
    )
    told = sum(it.redeliveries for it in second.values()) - sum(it.redeliveries for it in first.values())
    lost = sum(it.lost_updates for it in second.values()) - sum(it.lost_updates for it in first.values())
    if told:
        text += f" All readers together are told {abs(told):,} values {'more' if told > 0 else 'fewer'} once again."
    if lost:
        text += f" {abs(lost):,} updates {'more' if lost > 0 else 'fewer'} are lost."
    return text


def _change(ours: Percentiles, theirs: Percentiles) -> str:
    difference = theirs.total - ours.total
    if not difference:
        return "as many bytes"
    share = f" ({abs(difference) / ours.total:.1%})" if ours.total else ""
    return f"{abs(difference):,} bytes{share} {'more' if difference > 0 else 'less'}"


def _flat(scenario: Scenario) -> dict[str, str]:
    """Return every place of a scenario with what stands there; parachains go by their ids."""
    found: dict[str, str] = {}

    def visit(place: str, value: object) -> None:
        if isinstance(value, dict):
            for name, below in value.items():
                visit(f"{place}.{name}" if place else str(name), below)
        elif isinstance(value, list) and value and all(isinstance(it, dict) for it in value):
            for index, below in enumerate(value):
                visit(f"{place}[{below.get('id', below.get('publisher', index))}]", below)
        else:
            found[place] = msgspec.json.encode(value).decode()

    visit("", msgspec.to_builtins(scenario))
    return found


def _figures(it: DesignFigures | None) -> dict[str, int | None]:
    if it is None:
        return {}
    told = {} if isinstance(it.deletions, UnsetType) else {"deletions told": it.deletions}
    return {
        **_spread("relay proof", it.proof_bytes),
        **_spread("own state proof", it.own_bytes),
        **_spread("whole block", it.pov_bytes),
        **_spread("compressed", it.compressed_bytes),
        "blocks that do not fit": it.oversize_blocks,
        "callbacks": it.callbacks,
        "  told again": it.redeliveries,
        "  overtaken values": it.conflated,
        **told,
        "latency p50, blocks": it.latency_blocks.p50,
        "latency p99, blocks": it.latency_blocks.p99,
        "incomplete blocks": it.incomplete_blocks,
        "lost updates": it.lost_updates,
        "undelivered at rest": it.undelivered,
        "disabled publishers": len(it.disabled_publishers),
        "panics": it.panics,
    }


def _spread(name: str, sizes: Percentiles) -> dict[str, int | None]:
    return {
        f"{name} p50, bytes": sizes.p50,
        f"{name} p99, bytes": sizes.p99,
        f"{name} max, bytes": sizes.max,
        f"{name} total, bytes": sizes.total,
    }


def _row(figure: str, first: int | None, second: int | None) -> tuple[str, ...]:
    cells = [figure, *("-" if value is None else f"{value:,}" for value in (first, second))]
    if first is None or second is None or first == second:
        return (*cells, "", "")
    return (*cells, f"{second - first:+,}", f"{second / first - 1:+.1%}" if first else "new")
