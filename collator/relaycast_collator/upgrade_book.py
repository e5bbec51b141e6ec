"""The upgrades of all chains of a network: scheduled together, because chains must agree on the longest value."""

from collections.abc import Collection, Mapping, Sequence

from relaycast_collator.parachain import Parachain
from relaycast_collator.relay_chain import RelayChain
from relaycast_collator.upgrades import ParachainUpgrade, RelayUpgrade
from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.subscription import ensure_hears
from relaycast_xcm import ParaId


class UpgradeBook:
    """Schedules upgrades of a relay chain and its parachains."""

    def __init__(self, relay_chain: RelayChain, parachains: Mapping[ParaId, Parachain]) -> None:
        self._relay_chain, self._parachains = relay_chain, parachains

    def schedule(
        self,
        *,
        relay: Sequence[RelayUpgrade] = (),
        parachains: Mapping[ParaId, Sequence[ParachainUpgrade]] | None = None,
    ) -> None:
        """Schedule upgrades: those of the relay chain from its next block on, the others from its newest one on.

        Schedules all or none. ``ValueError`` for

        * an unknown parachain, or constants that a configuration refuses,
        * a block that has passed, or that is before the block of an earlier upgrade,
        * values longer than a subscriber expects,
        * subscriptions that the parachain cannot have,
        * policy ``told`` with a handler that has no callback for deletions.
        """
        given, newest = parachains or {}, self._relay_chain.head.number
        limits = self._relay_chain.upgrades.timeline(relay)
        _ensure_ahead([it.at for it in relay], "the relay chain", newest + 1)
        for para_id, upgrades in given.items():
            if para_id not in self._parachains:
                raise ValueError(f"there is no parachain {para_id}")
            _ensure_ahead([it.at for it in upgrades], f"parachain {para_id}", newest)
            for it in upgrades:
                tells = it.policies is not None and it.policies.deletion.notifies
                ensure_hears(self._parachains[para_id].subscriber.handler, deletions=tells)
        for para_id, parachain in self._parachains.items():
            coming = given.get(para_id, ())
            timeline = parachain.upgrades.timeline(coming)
            if parachain.subscriber.subscribes or any(it.subscriptions for it in coming):
                _ensure_values_fit(para_id, timeline, limits, since=newest)
            _ensure_subscribable(parachain, parachain.kept.wanted.keys(), coming, timeline)
        self._relay_chain.upgrades.scheduled += relay
        for para_id, upgrades in given.items():
            self._parachains[para_id].upgrades.scheduled += upgrades

    def check_reader(self, para_id: ParaId, publisher: ParaId) -> None:
        """Raise ``ValueError`` if scheduled upgrades rule out a subscription to ``publisher``.

        They may allow longer values than the parachain expects, or fewer publishers.
        """
        parachain, newest = self._parachains[para_id], self._relay_chain.head.number
        timeline = parachain.upgrades.timeline()
        _ensure_values_fit(para_id, timeline, self._relay_chain.upgrades.timeline(), since=newest)
        _ensure_subscribable(parachain, parachain.kept.wanted.keys() | {publisher}, (), timeline)


def _ensure_ahead(blocks: Sequence[int], chain: str, first: int) -> None:
    for at in blocks:
        if at < first:
            raise ValueError(f"an upgrade of {chain} is at relay block {first} or later, got {at}")


def _ensure_values_fit(
    para_id: ParaId,
    subscriber: Sequence[tuple[int, SubscriberConfig]],
    relay: Sequence[tuple[int, BroadcasterConfig]],
    *,
    since: int,
) -> None:
    """Raise ``ValueError`` if the relay chain allows longer values than the subscriber expects.

    Looks at relay block ``since`` and later ones.
    """
    for block in sorted({max(at, since) for at, _ in (*subscriber, *relay)}):
        expected = [config for at, config in subscriber if at <= block][-1].max_value_length
        allowed = [config for at, config in relay if at <= block][-1].max_value_length
        if expected < allowed:
            raise ValueError(
                f"max_value_length of parachain {para_id} from relay block {block} on must be at least {allowed}, "
                f"the longest value that the relay chain lets be published, got {expected}"
            )


def _ensure_subscribable(
    parachain: Parachain,
    publishers: Collection[ParaId],
    coming: Sequence[ParachainUpgrade],
    timeline: Sequence[tuple[int, SubscriberConfig]],
) -> None:
    """Raise ``ValueError`` if upgrades replace fixed subscriptions or allow fewer than ``publishers``."""
    upgrades = [*parachain.upgrades.pending, *coming]
    for upgrade, (at, config) in zip(upgrades, timeline[len(timeline) - len(upgrades) :], strict=True):
        if upgrade.subscriptions is not None:
            if parachain.subscriber.handler is not parachain.kept:
                raise ValueError(f"parachain {parachain.para_id} has a handler of its own that says what it wants")
            publishers = upgrade.subscriptions.keys()
        if len(publishers) > config.max_publishers:
            raise ValueError(
                f"parachain {parachain.para_id} subscribes to at most {config.max_publishers} publishers "
                f"from relay block {at} on, got {len(publishers)}"
            )
