"""What a run came to, in words: one paragraph that says what happened, and one that says why it cost that."""

from relaycast.account import dot
from relaycast.predict.closed_forms import inline_hint
from relaycast.report.runtimes import runtime_sentences
from relaycast.report.upgrades import upgrade_sentence
from relaycast.report.verdicts import largest, title
from relaycast.terminal import counted
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_ledger.outcome import Outcome, PublisherCost, SubscriberOutcome

REASONS = {
    "top": "the way to the publishers through the relay chain's top trie",
    "new": "nodes where there was none before",
    "changed": "nodes that new values changed, from the leaf up to the root",
    "unseen": "nodes read again because the node cache does not have what was there",
    "value": "values of more than 23 bytes, which are nodes of their own",
}
"""What bytes of pub-sub are for, as a sentence has it."""

NOT_NEEDED = {
    "unchanged": "because nothing below had moved",
    "cached": "because the node cache has it",
    "beyond_budget": "because the budget ended before",
    "disabled": "because its publisher is disabled",
}
"""Why bytes were left out, as a sentence has it."""

MAX_NAMED = 3
"""Readers that a sentence names."""

WORTH_SAYING = 0.05
"""Smallest share of a whole that is mentioned."""


def pruned_bytes(cost: PublisherCost) -> int:
    """Return the bytes that were collected for a publisher and left out, for whatever reason."""
    return sum(totals.node_bytes for totals in cost.pruned.values())


def story(run: Outcome) -> str:
    """Return what happened, in one paragraph."""
    minutes = run.blocks * run.block_seconds / 60
    published = sum(it.published for it in run.publishers)
    refused = sum(it.refused_messages for it in run.publishers)
    callbacks = sum(it.callbacks for it in run.subscribers)
    published += sum(it.published for it in run.runtimes)
    refused += sum(it.refused_messages for it in run.runtimes)
    publishing = len(run.publishers) + sum(it.published > 0 for it in run.runtimes)
    text = (
        f"Over {counted(run.blocks, 'relay block')} ({minutes:,.1f} minutes) {_parachains(publishing)} "
        f"published {counted(published, 'value')}, and {_parachains(len(run.subscribers))} subscribed: "
        f"{counted(callbacks, 'callback')}."
    )
    told_again = sum(it.told_again for it in run.subscribers)
    if told_again:
        text += f" {told_again:,} of them told what the reader had been told before; they count in no latency."
    deletions = sum(it.deletions or 0 for it in run.subscribers)
    if deletions:
        text += f" {counted(deletions, 'deletion')} {'was' if deletions == 1 else 'were'} told as well."
    text += _warm_up_sentence(run) + _uncharged_sentence(run) + _inline_sentence(run)
    text = f"{text} The relay chain refused {counted(refused, 'message')}." if refused else text
    text = " ".join([text + upgrade_sentence(run), *runtime_sentences(run)])
    return text + _fees_sentence(run)


def why(run: Outcome) -> str:
    """Return what the largest reader's bytes were for; empty where no account is kept or nothing was read."""
    if not run.subscribers:
        return ""
    worst = largest(run)
    sums = {
        cause: sum(cost.by_cause[cause].node_bytes for cost in worst.publishers if cause in cost.by_cause)
        for cause in IN_THE_PROOF
    }
    total = sum(sums.values())
    if not total:
        return ""
    parts = [
        f"{size / total:.0%} are {REASONS[cause]}" if size < total else f"all are {REASONS[cause]}"
        for cause, size in sorted(sums.items(), key=lambda item: -item[1])
        if size / total >= WORTH_SAYING
    ]
    text = f"Of the {total:,} bytes that pub-sub put into the proofs of {title(worst)}, {_listed(parts)}."
    siblings = sum(cost.sibling_bytes for cost in worst.publishers)
    if siblings / total >= WORTH_SAYING:
        text += f" {siblings / total:.0%} are references to siblings that nobody reads: few keys in a full trie."
    return text + _left_out_sentence(worst) + _cache_sentence(worst) + _cut_sentence(worst) + _disabled_sentence(run)


def _warm_up_sentence(run: Outcome) -> str:
    """Return what percentiles leave out, where they leave out anything."""
    left_out = [(title(it), it.warm_up_blocks) for it in run.subscribers if it.warm_up_blocks]
    if not left_out:
        return ""
    counts = sorted({blocks for _, blocks in left_out})
    if len(counts) == 1:
        which = f"the first {counted(counts[0], 'block')} of {'each' if len(left_out) > 1 else left_out[0][0]}"
    else:
        which = f"the first {counts[0]} to {counts[-1]} blocks, by reader"
    return f" Percentiles leave out the warm-up, by default up to the end of the first delivery: {which}."


def _inline_sentence(run: Outcome) -> str:
    """Return what values one byte over the inline limit cost, if any publisher has such."""
    found = [(it, hint) for it in run.publishers if (hint := inline_hint(it.sizes))]
    if not found:
        return ""
    publisher, hint = found[0]
    others = f" and {counted(len(found) - 1, 'other parachain')}" if len(found) > 1 else ""
    return f" {hint} {title(publisher)}{others} {'publish' if others else 'publishes'} such values."


def _uncharged_sentence(run: Outcome) -> str:
    """Return what was longer than a read is charged for, so that a budget could not keep it out."""
    reader, longest = max(
        ((it, it.uncharged[0]) for it in run.subscribers if it.uncharged),
        key=lambda pair: pair[1].excess_bytes,
        default=(None, None),
    )
    if reader is None or longest is None:
        return ""
    others = len({read.name for it in run.subscribers for read in it.uncharged}) - 1
    more = f", and so are {counted(others, 'other entry', 'other entries')}" if others else ""
    return (
        f" On the way through the relay chain's state {longest.name} is longer than any read is charged for{more}: "
        f"{title(reader)} carries {longest.excess_bytes:,} bytes of it beyond its budget in "
        f"{counted(longest.blocks, 'block')}."
    )


def _fees_sentence(run: Outcome) -> str:
    paying = [(it.spent_planck, it.published) for it in run.publishers if isinstance(it.spent_planck, int)]
    spent, published = sum(planck for planck, _ in paying), sum(values for _, values in paying)
    if not spent:
        return ""
    each = f", {_rounded(spent // published)} a value" if published else ""
    values = counted(published, "published value")
    return f" {_parachains(len(paying))} spent {_rounded(spent)} on fees for {values}{each}, trapped tokens included."


def _rounded(planck: int) -> str:
    """Return an amount in DOT, with four decimals unless that is nothing."""
    return dot(round(planck, -6) or planck)


def _left_out_sentence(reader: SubscriberOutcome) -> str:
    left: dict[str, int] = {}
    for cost in reader.publishers:
        for name, totals in cost.pruned.items():
            left[name] = left.get(name, 0) + totals.node_bytes
    total = sum(left.values())
    if not total:
        return ""
    parts = [
        f"{size / total:.0%} {NOT_NEEDED[name]}" if size < total else NOT_NEEDED[name]
        for name, size in sorted(left.items(), key=lambda item: -item[1])
        if size / total >= WORTH_SAYING
    ]
    return f" Another {total:,} bytes were collected and left out{'' if len(parts) == 1 else ':'} {_listed(parts)}."


def _cache_sentence(reader: SubscriberOutcome) -> str:
    pubsub = reader.proof_bytes.total - reader.static_bytes.total
    if pubsub <= 0 or reader.own_bytes.total <= pubsub:
        return ""
    return (
        f" Nodes of its own state, the price of the node cache, have {reader.own_bytes.total:,} bytes more, "
        f"{reader.own_bytes.total / pubsub:.1f} times as many."
    )


def _cut_sentence(reader: SubscriberOutcome) -> str:
    if not reader.incomplete_blocks:
        return ""
    return f" In {reader.incomplete_blocks:,} of {reader.blocks:,} blocks the budget ended before all was read."


def _disabled_sentence(run: Outcome) -> str:
    disabled = [(title(it), it.disabled_publishers) for it in run.subscribers if it.disabled_publishers]
    if not disabled:
        return ""
    told = [f"{name} disabled {_listed([str(publisher) for publisher in publishers])}" for name, publishers in disabled]
    if len(told) > MAX_NAMED:
        told = [*told[:MAX_NAMED], f"{len(told) - MAX_NAMED} more readers did the like"]
    return f" For a path that was too deep {_listed(told)}: they are no longer read."


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _parachains(count: int) -> str:
    return f"{count} parachain{'' if count == 1 else 's'}"
