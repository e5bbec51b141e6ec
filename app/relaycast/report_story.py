"""What a run came to, in words: one paragraph that says what happened, and one that says why it cost that."""

from relaycast.outcome import Outcome, PublisherCost, SubscriberOutcome
from relaycast.templates import percent
from relaycast_collator.account_records import IN_THE_PROOF

REASONS = {
    "top": "the way to the publishers through the relay chain's top trie",
    "new": "nodes where there was none before",
    "changed": "nodes that new values changed, from the leaf up to the root",
    "unseen": "nodes read again because the node cache does not have what was there",
    "value": "values, which stand outside of their nodes from 33 bytes on",
}
"""What bytes of pub-sub are for, as a sentence has it."""

WORTH_SAYING = 0.05
"""Of a whole, the share from which a part is mentioned."""


def title(subscriber: SubscriberOutcome) -> str:
    """Return how a subscriber is called in charts."""
    return f"{subscriber.para_id} {subscriber.name}".strip()


def pruned_bytes(cost: PublisherCost) -> int:
    """Return the bytes that were collected for a publisher and left out, for whatever reason."""
    return sum(totals.node_bytes for totals in cost.pruned.values())


def story(run: Outcome) -> str:
    """Return what happened, in one paragraph."""
    minutes = run.blocks * run.block_seconds / 60
    published = sum(it.published for it in run.publishers)
    refused = sum(it.refused_messages for it in run.publishers)
    callbacks = sum(it.callbacks for it in run.subscribers)
    worst = largest(run)
    text = (
        f"Over {run.blocks:,} relay blocks ({minutes:,.1f} minutes) {_parachains(len(run.publishers))} published "
        f"{published:,} values, and {_parachains(len(run.subscribers))} subscribed: {callbacks:,} callbacks. "
        f"The largest reader, {title(worst)}, brought {worst.proof_bytes.p50:,} bytes of relay proof along in its "
        f"median block, {worst.static_bytes.p50:,} of them for the keys that every parachain block proves, and "
        f"{worst.proof_bytes.p99:,} at the 99th percentile; with the {worst.own_bytes.p50:,} bytes of its own state "
        f"that the node cache takes, that is {percent(worst.pov_share.p99)} of what a block may carry."
    )
    return f"{text} The relay chain refused {refused:,} messages." if refused else text


def why(run: Outcome) -> str:
    """Return what the largest reader's bytes were for; empty where no account is kept or nothing was read."""
    worst = largest(run)
    sums = {
        cause: sum(cost.by_cause[cause].node_bytes for cost in worst.publishers if cause in cost.by_cause)
        for cause in IN_THE_PROOF
    }
    total = sum(sums.values())
    if not total:
        return ""
    parts = [
        f"{size / total:.0%} are {REASONS[cause]}"
        for cause, size in sorted(sums.items(), key=lambda item: -item[1])
        if size / total >= WORTH_SAYING
    ]
    text = f"Of the {total:,} bytes that pub-sub put into the proofs of {title(worst)}, {_listed(parts)}."
    siblings = sum(cost.sibling_bytes for cost in worst.publishers)
    if siblings / total >= WORTH_SAYING:
        text += f" {siblings / total:.0%} are references to siblings that nobody reads: few keys in a full trie."
    left = sum(pruned_bytes(cost) for cost in worst.publishers)
    if left:
        text += f" Another {left:,} bytes were collected and left out, most of them because nothing below had moved."
    return text + _cache_sentence(worst) + _cut_sentence(worst)


def largest(run: Outcome) -> SubscriberOutcome:
    """Return the reader with the largest proofs."""
    return max(run.subscribers, key=lambda it: it.proof_bytes.p99)


def _cache_sentence(reader: SubscriberOutcome) -> str:
    pubsub = max(0, reader.proof_bytes.p50 - reader.static_bytes.p50)
    if not pubsub or reader.own_bytes.p50 <= pubsub:
        return ""
    return (
        f" Keeping the node cache takes {reader.own_bytes.p50 / pubsub:.1f} times the bytes that pub-sub has in the "
        "median proof: compare with --policy cache=none."
    )


def _cut_sentence(reader: SubscriberOutcome) -> str:
    if not reader.incomplete_blocks:
        return ""
    return f" In {reader.incomplete_blocks:,} of {reader.blocks:,} blocks the budget ended before all was read."


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _parachains(count: int) -> str:
    return f"{count} parachain{'' if count == 1 else 's'}"
