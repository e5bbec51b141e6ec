"""A subscriber whose handler declares what its callbacks weigh, over the world of the subscriber's tests."""

from dataclasses import dataclass, field, replace

from pallets.subscriber_world import MOCK, Recorder, World
from relaycast_pallets import Policies, SubscribedKey, SubscriberConfig, TtlState
from relaycast_xcm.primitives import ParaId, Weight

MICROSECOND = 1_000_000
"""In picoseconds."""


def micros(count: int, proof_size: int = 0) -> Weight:
    return Weight(count * MICROSECOND, proof_size)


@dataclass
class WeighingRecorder(Recorder):
    """A recorder that declares ``each`` for a callback, or what ``declared`` says; ``used`` is what it returns."""

    each: Weight = Weight.ZERO
    declared: dict[tuple[ParaId, SubscribedKey], Weight] = field(default_factory=dict)
    used: Weight | None = None
    """Weight that every callback returns; ``None`` for the declared one."""

    def callback_weight(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        return self.declared.get((publisher, key), self.each)

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        super().on_data_updated(publisher, key, value, ttl_state)
        return self.callback_weight(publisher, key) if self.used is None else self.used

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        super().on_data_deleted(publisher, key)
        return self.callback_weight(publisher, key) if self.used is None else self.used


class WeighingWorld(World):
    """A world whose ``weigher`` handles the callbacks, at most ``limit`` of them in a block."""

    def __init__(
        self,
        *,
        each: Weight = Weight.ZERO,
        limit: Weight | None = None,
        config: SubscriberConfig = MOCK,
        policies: Policies | None = None,
    ) -> None:
        allowed = config.callback_limit if limit is None else limit
        super().__init__(config=replace(config, callback_limit=allowed), policies=policies)
        self.weigher = self.handler = self.subscriber.handler = WeighingRecorder(each=each)

    def allow(self, limit: Weight) -> None:
        """Let the callbacks of the blocks to come weigh at most ``limit``, as a runtime upgrade would."""
        self.subscriber.config = replace(self.subscriber.config, callback_limit=limit)
