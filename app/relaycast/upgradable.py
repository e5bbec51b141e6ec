"""Runtime upgrades of a ``Network``: from a block on, a chain has other limits, policies or subscriptions."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from msgspec import structs

import relaycast_collator as collator
from relaycast.callback_time import declared
from relaycast.chain_options import chain_options
from relaycast.choices import policies_of
from relaycast.feed import Feed, described, para_id_of, whole_number
from relaycast.refusal import nearest
from relaycast.scenario.upgrade_tables import BROADCASTER_CONSTANTS, SUBSCRIBER_CONSTANTS, Constants
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId


class Upgradable:
    """A network whose chains may run other code from a block on."""

    chains: collator.ChainSimulator
    _feeds: dict[Feed, Feed]

    def upgrade(
        self,
        para_id: int,
        *,
        at: int | None = None,
        keys: Iterable[Feed] | None = None,
        policies: Policies | Mapping[str, str | int] | None = None,
        budget: BudgetPolicy | str | None = None,
        callback_us: int | None = None,
        callback_proof_bytes: int | None = None,
        **limits: int,
    ) -> None:
        """Let a parachain run other code from its first block on relay block ``at`` on, by default from its next block.

        ``limits`` are ``max_trie_depth``, ``max_value_bytes``, ``max_publishers``, ``max_subscribed_keys``,
        ``max_total_keys``, ``max_cached_bytes`` and ``callback_limit_us``. It reads ``keys`` in the place of everything
        that it read; a callback for one of them declares and takes ``callback_us`` microseconds, by default what it did
        before. Policies that are not named stay as they are. ``ValueError`` for what chains do not agree on.

        >>> from relaycast import Network
        >>> net = Network(seed=7)
        >>> price = net.publisher(2000).publish("price/dot", b"5.31")
        >>> exchange = net.subscriber(3000, keys=[price])
        >>> net.upgrade(3000, at=4, max_trie_depth=8, policies={"cache": "none"})
        >>> net.run(blocks=5)
        <Run of 5 blocks: DeliveryTotals(callbacks=1, p50_blocks=2, p99_blocks=2, max_blocks=2, told_again=0), ...>
        """
        known, constants = para_id_of(para_id), _constants(limits, SUBSCRIBER_CONSTANTS)
        if known not in self.chains.parachains:
            raise ValueError(f"there is no parachain {known}")
        feeds = None if keys is None else list(keys)
        declares = callback_us is not None or callback_proof_bytes is not None
        if declares and feeds is None:
            raise ValueError("callback_us and callback_proof_bytes are for keys, got none")
        wanted = None if feeds is None else _subscriptions(feeds)
        upgrade = collator.ParachainUpgrade(
            at=self.chains.relay_chain.head.number if at is None else whole_number(at, "at"),
            constants=constants,
            policies=_policies_over(self.chains.parachains[known].upgrades.policies, policies),
            budget=chain_options(None, budget, None).get("budget"),
            subscriptions=wanted,
        )
        if declares:
            limit = self.chains.parachains[known].upgrades.timeline([upgrade])[-1][1].callback_limit
            weight = declared(callback_us or 0, callback_proof_bytes or 0, limit)
            upgrade = structs.replace(upgrade, weights=dict.fromkeys(wanted or (), weight))
        self.chains.upgrades.schedule(parachains={known: [upgrade]})
        self.name_feeds(feeds or ())

    def upgrade_relay_chain(self, *, at: int | None = None, **limits: int) -> None:
        """Let the relay chain run other code from block ``at`` on, by default from its next block.

        ``limits`` are ``max_value_bytes``, ``max_stored_keys``, ``max_total_bytes``, ``max_publishers`` and
        ``max_publishes_per_block``. What is published already stays. ``ValueError`` where a subscriber expects shorter
        values than may then be published.
        """
        first = self.chains.relay_chain.head.number + 1 if at is None else whole_number(at, "at")
        upgrade = collator.RelayUpgrade(at=first, constants=_constants(limits, BROADCASTER_CONSTANTS))
        self.chains.upgrades.schedule(relay=[upgrade])

    def name_feeds(self, feeds: Iterable[Feed]) -> None:
        """Register the names of feeds, for reports."""
        for feed in feeds:
            self._feeds[feed] = feed


def _subscriptions(feeds: Iterable[Feed]) -> dict[ParaId, list[SubscribedKey]]:
    """Return the keys of each publisher; ``TypeError`` for anything but feeds."""
    wanted: dict[ParaId, list[SubscribedKey]] = {}
    for feed in feeds:
        if not isinstance(feed, Feed):
            raise TypeError(f"keys are feeds, got {described(feed)}; publisher.feed(name) makes one")
        wanted.setdefault(ParaId(feed.publisher), []).append(SubscribedKey(feed.key))
    return wanted


def _constants(limits: Mapping[str, Any], known: Constants) -> dict[str, Any]:
    """Return the constants that limits set; ``TypeError`` for an unknown limit."""
    found: dict[str, Any] = {}
    for name, value in limits.items():
        if name not in known:
            raise TypeError(f"an upgrade has no limit {name!r} ({nearest(name, list(known))})")
        if whole_number(value, name) < 0:
            raise ValueError(f"{name} is at least 0, got {value}")
        constant, made = known[name]
        found[constant] = made(value)
    return found


def _policies_over(before: Policies, chosen: Policies | Mapping[str, str | int] | None) -> Policies | None:
    """Return ``before`` with the chosen policies; ``None`` if none are chosen."""
    if isinstance(chosen, Mapping):
        named = policies_of(chosen)
        kinds = {"cache" if kind == "max_cached_node" else kind for kind in chosen}
        return replace(before, **{it.name: getattr(named, it.name) for it in fields(before) if it.name in kinds})
    if not isinstance(chosen, Policies | None):
        raise TypeError(f"policies are Policies(..), got {described(chosen)}")
    return chosen
