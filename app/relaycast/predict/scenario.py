"""Predictions for a scenario: what each of its readers carries on average, with the node cache and without it.

Law: nothing is simulated. Each reader is taken to have its keys for a while, to read in every block, and never to be
cut short. A subscription without a formula is named with the reason, and counts nowhere.
"""

from msgspec import Struct

from relaycast.predict.closed_forms import cache_upkeep_bytes, delta_proof, full_proof
from relaycast.predict.ground import Ground
from relaycast.predict.run import LARGEST_NODE_BYTES, stays
from relaycast.scenario.ranges import range_of
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable


class SubscriptionCost(Struct, frozen=True, kw_only=True):
    """One publisher's part of a reader's blocks; bytes of its child trie alone."""

    publisher: int
    keys: int
    subscribed: int
    updated: int
    """Subscribed keys that are new in a block with news."""

    elsewhere: int
    """Other keys of the publisher that are new in it."""

    news_share: float
    """Share of the reader's blocks that have news of this publisher."""

    full_bytes: int
    """Proof of all subscribed keys: the first delivery, and without the cache every block with news."""

    delta_bytes: int
    """Proof of what is new, where the cache has the rest."""

    upkeep_bytes: int
    """Own state that reading and writing the cache takes in a block with news, as a compact proof."""

    @property
    def saved_bytes(self) -> int:
        """Bytes that the cache saves in a block with news; negative if it costs more than it saves."""
        return self.full_bytes - self.delta_bytes - self.upkeep_bytes


class ReaderCost(Struct, frozen=True, kw_only=True):
    """Bytes that the blocks of one reader carry: the relay proof with its static keys, and own state."""

    para_id: int
    name: str
    subscriptions: list[SubscriptionCost]
    without_formula: list[str]
    """Subscriptions that no formula fits, each with the reason."""

    first_proof_bytes: int
    """Relay proof of the block that reads every key for the first time."""

    with_cache_bytes: int
    """Average block, with the node cache."""

    without_cache_bytes: int
    """Average block, without it."""

    @property
    def saved(self) -> float:
        """The share of the bytes that the node cache saves, negative if it costs more than it saves."""
        return 1 - self.with_cache_bytes / self.without_cache_bytes if self.without_cache_bytes else 0.0


def predicted_readers(scenario: Scenario, ground: Ground) -> list[ReaderCost]:
    """Return what each reader of a scenario carries on average."""
    return [_reader(chain, scenario, ground) for chain in scenario.subscribers()]


def _reader(chain: ParachainTable, scenario: Scenario, ground: Ground) -> ReaderCost:
    found, without = [], []
    rules = scenario.publishers()
    for wanted in chain.subscribe:
        rule = rules.get(wanted.publisher)
        is_steady = [it.publisher for it in chain.subscribe].count(
            wanted.publisher
        ) == 1 and wanted.slides_every is None
        reason = _no_formula(rule, scenario) if is_steady else "its keys change"
        if rule is None or reason:
            without.append(f"{wanted.publisher}: {reason}")
        else:
            found.append(_subscription(chain, wanted, rule))
    ways, shares = ground.top_bytes * len(found), [(it, it.news_share) for it in found]
    base = ground.static_bytes + ways + (ground.own_changed_bytes if found else ground.own_bytes)
    return ReaderCost(
        para_id=chain.id,
        name=chain.name,
        subscriptions=found,
        without_formula=without,
        first_proof_bytes=ground.static_bytes + ways + sum(it.full_bytes for it in found),
        with_cache_bytes=base + round(sum(share * (it.delta_bytes + it.upkeep_bytes) for it, share in shares)),
        without_cache_bytes=base + round(sum(share * it.full_bytes for it, share in shares)),
    )


def _no_formula(rule: PublishTable | None, scenario: Scenario) -> str:
    """Return why no formula fits a subscription whose keys stay, empty if one does."""
    policies = scenario.policies
    if rule is None:
        return "its keys are not in the scenario"
    if policies.callback == "all-keys" or policies.max_cached_node < LARGEST_NODE_BYTES:
        return "the policies hide which keys changed, or keep only some nodes"
    return "" if stays(rule, scenario.blocks) else "its keys were crafted, expire or go with their publisher"


def _subscription(chain: ParachainTable, wanted: SubscriptionTable, rule: PublishTable) -> SubscriptionCost:
    keys = rule.keys
    count = len(wanted.keys if isinstance(wanted.keys, list) else range_of(wanted.keys, keys))
    span = chain.relay_blocks_per_block
    publications = max(1, round(span / rule.every))
    changed = min(keys, rule.changed_keys * publications)
    subscribed = min(count, keys)
    updated = round(changed * subscribed / keys)
    elsewhere = min(changed - updated, keys - subscribed)
    return SubscriptionCost(
        publisher=wanted.publisher,
        keys=keys,
        subscribed=subscribed,
        updated=updated,
        elsewhere=elsewhere,
        news_share=min(1.0, span / rule.every) / chain.cores,
        full_bytes=full_proof(keys, subscribed, rule.value_bytes).proof_bytes,
        delta_bytes=delta_proof(keys, subscribed, updated, rule.value_bytes, elsewhere=elsewhere).proof_bytes,
        upkeep_bytes=cache_upkeep_bytes(keys, subscribed, updated, rule.value_bytes, elsewhere=elsewhere),
    )
