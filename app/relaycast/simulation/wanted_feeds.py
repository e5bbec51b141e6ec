"""Which feeds the readers of a scenario want, block by block."""

from collections.abc import Collection

from msgspec import Struct

from relaycast.feed import Feed, feed_of
from relaycast.network import Network
from relaycast.scenario.scenario import ParachainTable, Scenario, SubscriptionTable, upgraded_subscriptions
from relaycast.scenario.workload import names_of, recorded_keys_of, replaced_at, slides, wanted
from relaycast_xcm import ParaId, Weight


class WantedFeeds(Struct, frozen=True):
    """``recorded_keys`` are those of recorded publishers in their order; ``wasm_parachains`` have real runtimes."""

    scenario: Scenario
    network: Network
    recorded_keys: dict[int, list[bytes]]
    wasm_parachains: Collection[int]

    def change(self, chain: ParachainTable, block: int) -> None:
        """Let a reader want in relay block ``block`` what it does not want before, and the other way round."""
        before, after = self._wanted(chain, block - 1), self._wanted(chain, block)
        for publisher, feeds in before.items():
            kept = set(after.get(publisher, ()))
            gone = [feed.key for feed in feeds if feed not in kept]
            if gone:
                self.network.chains.unsubscribe(chain.id, publisher, gone)
        self.network.subscriber(chain.id, keys=[feed for feeds in after.values() for feed in feeds])
        parachain = self.network.chains.parachains[ParaId(chain.id)]
        for it, _ in wanted(chain, block):
            if parachain.kept.weights or it.callback_weight != Weight.ZERO:
                keys = [feed.key for feed in after[it.publisher]]
                parachain.declare(ParaId(it.publisher), keys, it.callback_weight)

    def count(self, chain: ParachainTable) -> int:
        """Return how many different keys a reader subscribes to in the whole run."""
        published = {para_id: publish.keys for para_id, publish in self.scenario.publishers().items()}
        published |= {para_id: len(keys) for para_id, keys in self.recorded_keys.items()}
        upgraded = replaced_at(chain)
        last = self.scenario.blocks if upgraded is None else min(self.scenario.blocks, upgraded - 1)
        turns = ((it, slides(it, last, published.get(it.publisher, 0))) for it in chain.subscribe)
        before = {feed for it, turn in turns for slid in turn for feed in self._feeds(it, slid)}
        after = (feed for wanted in self.upgraded(chain).values() for feeds in wanted.values() for feed in feeds)
        return len(before.union(after))

    def upgraded(self, chain: ParachainTable) -> dict[int, dict[int, list[Feed]]]:
        """Return the feeds that upgrades give a reader, by relay block, then by publisher."""
        return {
            at: {it.publisher: self._feeds(it, 0) for it in tables}
            for at, tables in upgraded_subscriptions(chain).items()
        }

    def _wanted(self, chain: ParachainTable, block: int) -> dict[int, list[Feed]]:
        return {it.publisher: self._feeds(it, slid) for it, slid in wanted(chain, block)}

    def _feeds(self, subscription: SubscriptionTable, slid: int) -> list[Feed]:
        if subscription.publisher in self.wasm_parachains:
            assert isinstance(subscription.keys, list), "keys of a real runtime are named one by one"
            return [feed_of(subscription.publisher, name) for name in subscription.keys]
        publisher = self.network.publisher(subscription.publisher)
        publish = self.scenario.publishers().get(subscription.publisher)
        if publish is not None:
            return [publisher.feed(name) for name in names_of(subscription, publish, slid)]
        recorded = self.recorded_keys[subscription.publisher]
        return [publisher.feed(key) for key in recorded_keys_of(subscription, recorded, slid)]
