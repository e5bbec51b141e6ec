"""What a run comes to: what a block costs, whether it fits, and what would be cheaper.

Law: each verdict has one short sentence for the summary, and a text that says what was measured in which blocks. The
parts that a text names are of one block, so that they add up.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import UNSET

from relaycast.report.full_block import causes, fullest, share_taken
from relaycast.report.runtimes import cost_sentence, cost_summary
from relaycast.report.templates import percent
from relaycast.terminal import counted
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_ledger.outcome import (
    BLOCKS_BEHIND,
    ENOUGH_BLOCKS,
    FullBlock,
    Outcome,
    Point,
    PublisherOutcome,
    RuntimeOutcome,
    Starvation,
    SubscriberOutcome,
    rank,
)

WORTH_CHANGING = 0.005
"""An alternative is named if it saves at least this part of the bytes that blocks carry."""

MAX_NAMED = 3
"""Readers that a verdict names."""

NO_MESSAGES_BYTES = 4
"""What an inherent without messages says of them."""


class Severity(Enum):
    """How a verdict is to be taken."""

    FINE = "fine"
    WARNING = "warning"
    BAD = "bad"


class RunVerdict(NamedTuple):
    """One finding about a run; ``about`` is ``cost``, ``starved``, ``fits``, ``alternative`` or ``runtimes``."""

    about: str
    summary: str
    text: str
    ending: Severity = Severity.FINE


def verdicts(run: Outcome) -> list[RunVerdict]:
    """Return the verdicts of a run.

    ``starved`` only where a reader starved or the run is too short to tell, ``runtimes`` with real runtimes only.
    """
    found = [_cost(run), *_starved(run), _fits(run), _alternative(run)] if run.subscribers else [_fits(run)]
    if run.runtimes:
        heaviest = max(run.runtimes, key=lambda it: it.pov_bytes.p99)
        found.append(RunVerdict("runtimes", cost_summary(heaviest), cost_sentence(heaviest)))
    return found


def title(parachain: PublisherOutcome | SubscriberOutcome | RuntimeOutcome) -> str:
    """Return how a parachain is called in charts."""
    return f"{parachain.para_id} {parachain.name}".strip()


def largest(run: Outcome) -> SubscriberOutcome:
    """Return the reader whose blocks carry most."""
    return max(run.subscribers, key=lambda it: it.pov_bytes.p99)


def median_block(points: Sequence[Point]) -> Point | None:
    """Return the first block with the median of what blocks carry that bring something new; of all if none does.

    The warm-up is left out unless there is nothing else.
    """
    steady = [point for point in points if not point.warm_up] or points
    chosen = [point for point in steady if point.callbacks] or steady
    median = rank(sorted(point.pov_bytes for point in chosen), 50)
    return next((it for it in chosen if it.pov_bytes == median), None)


def by_cause(point: Point) -> dict[str, int]:
    """Return the bytes of a block by cause; they add up to ``pov_bytes``."""
    causes = {"static": point.static_bytes}
    if point.by_cause:
        causes |= dict(zip(IN_THE_PROOF, point.by_cause, strict=True))
    else:
        causes["pubsub"] = point.proof_bytes - point.static_bytes
    causes |= {"own": point.own_pov_bytes, "messages": point.message_bytes}
    causes["rest"] = max(0, point.pov_bytes - sum(causes.values()))
    return {cause: size for cause, size in causes.items() if size}


def _cost(run: Outcome) -> RunVerdict:
    it = largest(run)
    point = median_block(run.series[it.para_id])
    if point is None or not point.pov_bytes:
        return RunVerdict("cost", f"{title(it)} built no block.", f"Cost: no block of {title(it)} was built.")
    pubsub = point.proof_bytes - point.static_bytes
    rest = point.pov_bytes - point.proof_bytes - point.own_pov_bytes - point.message_bytes
    own = f"{point.own_pov_bytes:,} of own state as a compact proof ({point.own_bytes:,} as whole nodes)"
    parts = f"{pubsub:,} for pub-sub, {own}, {point.static_bytes:,} for static keys"
    messages = f", {point.message_bytes:,} of messages" if point.message_bytes > NO_MESSAGES_BYTES else ""
    others = rest if messages else rest + point.message_bytes
    share = percent(point.pov_bytes / run.relaychain.max_pov_bytes)
    which = "that brings something new" if point.callbacks else "(nothing was delivered)"
    kind = "that delivers values" if point.callbacks else "without deliveries"
    carried = f"{point.pov_bytes:,} bytes in the median: {share} of the largest PoV"
    return RunVerdict(
        "cost",
        f"A block of {title(it)} {kind} carries {carried}.",
        f"Cost: a block of {title(it)} {which} carries {point.pov_bytes:,} bytes in the median, {share} of the largest "
        f"PoV: {parts}{messages} and {others:,} of header and lengths. Compressed it has {point.compressed_bytes:,}.",
    )


def starved_line(name: str, it: Starvation) -> str:
    """Return what the reader called ``name`` missed, as one clause."""
    text = f"{name} had something to receive in {counted(it.blocks, 'block')}, of which {it.cut_short:,} were cut short"
    if it.blocks_without:
        text += f"; it received nothing in {counted(it.blocks_without, 'such block')} in a row"
    return f"{text}; it ends over {BLOCKS_BEHIND} relay blocks behind on a key" if it.is_behind else text


def _starved(run: Outcome) -> list[RunVerdict]:
    """Return which readers were not given what they subscribe to; nothing where all were."""
    judged = [(it, it.starvation) for it in run.subscribers if it.starvation is not UNSET]
    starved = [(it, found) for it, found in judged if found.is_starved]
    shown = starved or judged
    if not shown:
        return []
    lines = [starved_line(title(it), found) for it, found in shown[:MAX_NAMED]]
    if len(shown) > MAX_NAMED:
        lines.append(f"{counted(len(shown) - MAX_NAMED, 'more reader')} alike")
    text = ". ".join(lines)
    if not starved:
        short = f"The run is too short to tell whether {_readers(judged, run)} starves"
        rule = f"that takes {ENOUGH_BLOCKS} blocks with something to receive"
        return [RunVerdict("starved", f"{short}.", f"{short}: {rule}. {text}.", Severity.WARNING)]
    return [
        RunVerdict(
            "starved",
            f"Starved: {_readers(starved, run)} did not receive what it subscribes to.",
            f"Starved: {text}. relaycast budget finds the smallest budget that loses nothing.",
            Severity.BAD,
        )
    ]


def _readers(found: Sequence[tuple[SubscriberOutcome, Starvation]], run: Outcome) -> str:
    if len(found) == 1:
        return title(found[0][0])
    return f"each of {len(found):,} of {len(run.subscribers):,} readers"


def _fits(run: Outcome) -> RunVerdict:
    chains: Sequence[SubscriberOutcome | RuntimeOutcome] = (*run.subscribers, *run.runtimes)
    fullest_of = [(it, it.fullest_block) for it in chains if it.fullest_block is not None]
    if not fullest_of:
        return RunVerdict("fits", "No block was built.", "Fits: no block was built.", Severity.WARNING)
    it, block = max(fullest_of, key=lambda pair: pair[1].load)
    if run.oversize_blocks:
        built = sum(it.blocks for it in chains)
        blocks = f"{run.oversize_blocks:,} of {counted(built, 'block')}"
        return RunVerdict(
            "fits",
            f"Does not fit: the relay chain would refuse {blocks}.",
            f"Does not fit: the relay chain would refuse {blocks}. Of {title(it)}, {fullest(block)}.",
            Severity.BAD,
        )
    text = f"Fits: the fullest block, of {title(it)} in relay block {block.block}, takes {_taken(block)}."
    if run.subscribers:
        text = f"{text} {_budget(run)}"
    warnings = []
    large = sum(it.large_blocks for it in run.subscribers)
    if large:
        warnings.append(f"{counted(large, 'block')} fit only because they are compressed ({causes(block)}).")
    tight = [it for it in run.subscribers if it.message_free_bytes < it.any_key_bytes]
    if tight:
        warnings.append(_tight(tight))
    text = " ".join([text, *(f"Warning: {warning}" for warning in warnings)])
    is_fine = not warnings and all(it.starvation is UNSET for it in run.subscribers)
    return RunVerdict("fits", _fits_summary(run, block), text, Severity.FINE if is_fine else Severity.WARNING)


def _fits_summary(run: Outcome, block: FullBlock) -> str:
    """Return whether all blocks fit, and what kept them from reading everything."""
    fed = " and no reader starved" if run.subscribers and all(it.starvation is UNSET for it in run.subscribers) else ""
    text = f"Every block fits{fed}: the fullest takes {share_taken(block)} of the largest PoV"
    large = sum(it.large_blocks for it in run.subscribers)
    if large:
        text += f", {counted(large, 'block')} only because they are compressed"
    cut_short = sum(it.incomplete_blocks for it in run.subscribers)
    if cut_short:
        text += f"; {counted(cut_short, 'block')} ended before all was read"
    return f"{text}."


def _tight(readers: Sequence[SubscriberOutcome]) -> str:
    """Return what may happen to keys where a budget does not hold the largest of them."""
    it, others = max(readers, key=lambda it: it.any_key_bytes - it.message_free_bytes), len(readers) - 1
    alike = f"; {counted(others, 'other reader')} alike" if others else ""
    return (
        f"the {it.message_free_bytes:,} bytes that pub-sub has in a block of {title(it)} do not hold the deepest and "
        f"longest key there may be, which is then passed over; {it.any_key_bytes:,} hold any{alike}."
    )


def _taken(block: FullBlock) -> str:
    """Return how much of its limits a block takes, the limit that decides first."""
    size = f"{share_taken(block)} of the largest PoV, {block.sent_bytes:,} of {block.max_pov_bytes:,} bytes compressed"
    if block.sent_bytes / block.max_pov_bytes >= block.load:
        return size
    seconds = f"{block.max_ref_time / 1e12:g} seconds"
    return f"{percent(block.load)} of the {seconds} that it may compute; and {size}"


def _budget(run: Outcome) -> str:
    """Return which budget is known to deliver everything as fast, and where the smallest one is found."""
    search = "relaycast budget finds the smallest that loses nothing"
    with_messages = any(it.message_bytes.total for it in run.subscribers)
    waiting = sum(it.callback_load.waiting_blocks for it in run.subscribers if it.callback_load)
    cut_short = sum(it.incomplete_blocks for it in run.subscribers) - waiting
    sentences = [_callbacks(run)] if waiting else []
    if cut_short:
        left = "What messages left of the budget" if with_messages else "The budget"
        sentences.append(f"{left} cut {counted(cut_short, 'block')} short; {search}.")
    if sentences:
        return " ".join(sentences)
    most = max((point.metered_bytes for points in run.series.values() for point in points), default=0)
    if with_messages:
        return f"No pass used more than {most:,} bytes beside the messages; {search}."
    return f"No pass used more than {most:,} bytes: a budget of that size delivers everything as fast; {search}."


def _callbacks(run: Outcome) -> str:
    """Return in how many blocks callbacks reached their limit, for the reader with the most such blocks."""
    loads = [(it, it.callback_load) for it in run.subscribers if it.callback_load]
    it, load = max(loads, key=lambda pair: pair[1].waiting_blocks)
    others = sum(other.waiting_blocks for _, other in loads) - load.waiting_blocks
    alike = f", and {counted(others, 'block')} of other readers" if others else ""
    blocks = f"in {counted(load.waiting_blocks, 'block')}{alike}; further ones waited"
    changes = (change for upgrade in run.upgrades or () if upgrade.para_id == it.para_id for change in upgrade.changes)
    if any(change.startswith("callback_limit_us:") for change in changes):
        over = "one that declares more than the limit of its block is passed over (CallbackBeyondLimit in events.jsonl)"
        return f"Callbacks filled the time, changed by an upgrade, that a block of {title(it)} has {blocks}; {over}."
    seconds = f"{load.limit_ref_time / 1e12:g} seconds"
    return f"Callbacks filled the {seconds} that a block of {title(it)} has for them {blocks}."


def _alternative(run: Outcome) -> RunVerdict:
    it = run.alternative
    if it is None:
        text = "Alternative: not measured; relaycast compare SCENARIO --policy cache=none tells."
        return RunVerdict("alternative", "No cheaper design was looked for.", text)
    where, readers = f"measured in relay blocks {it.first_block} to {it.last_block}, before compression", "readers"
    if len(it.readers) < len(run.subscribers):
        where = f"{where}, of {len(it.readers):,} of {counted(len(run.subscribers), 'reader')}"
        readers = "measured readers"
    again = f" and tells {counted(it.its_told_again, 'value')} again" if it.its_told_again else ""
    if it.violations:
        summary = f"The alternative {it.policy} breaks an invariant."
        return RunVerdict("alternative", summary, f"Alternative: {it.policy} breaks an invariant ({where}).")
    titles = {one.para_id: title(one) for one in run.subscribers}
    parts = [(titles[one.para_id], one.saved) for one in it.readers]
    cheaper = [(name, saved) for name, saved in parts if saved >= WORTH_CHANGING]
    dearer = [(name, -saved) for name, saved in parts if -saved >= WORTH_CHANGING]
    if not cheaper:
        more = f"carry {_range(dearer)} more{_whose(dearer, parts, readers)}" if dearer else "carry about as much"
        summary = f"No alternative is cheaper: with {it.policy}, blocks {more}."
        return RunVerdict(
            "alternative", summary, f"Alternative: none is cheaper; with {it.policy} blocks {more} ({where})."
        )
    costs = f" and costs {_range(dearer)} more{_whose(dearer, parts, readers)}" if dearer else ""
    kind = "Cheaper for some" if dearer else "Cheaper"
    saves = f"{kind}: {it.policy} saves {_range(cheaper)}"
    return RunVerdict(
        "alternative",
        f"{saves} of the bytes{_whose(cheaper, parts, readers)}{costs}.",
        f"{saves} of what blocks carry{_whose(cheaper, parts, readers)}{costs}{again} ({where}).",
    )


def _range(parts: Sequence[tuple[str, float]]) -> str:
    """Return the shares from the least to the largest."""
    least, most = f"{min(part for _, part in parts):.1%}", f"{max(part for _, part in parts):.1%}"
    return most if least == most else f"{least[:-1]} to {most}"


def _whose(parts: Sequence[tuple[str, float]], every: Sequence[tuple[str, float]], readers: str) -> str:
    """Return for which ``readers`` shares hold, empty if there is one reader in all."""
    if len(every) == 1 and readers == "readers":
        return ""
    if len(parts) == 1:
        return f" for {parts[0][0]}"
    return (
        f" for {len(parts):,} of {len(every):,} {readers}"
        if len(parts) < len(every)
        else f" for each of {len(parts):,} {readers}"
    )
