"""Lists of replays, as ``icrc77_get_replays`` gives them. Source: ICRC-77, "Methods"."""

from collections.abc import Callable

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.names import REPLAY_REGISTERED, REPLAY_SENT, REPLAY_SKIPPED
from relaycast_gateway.icrc.replay.replays import EventReplay
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import nat


def replay_filter(given: Variant | None) -> Callable[[EventReplay], bool]:
    """Return what an ``OrchestrationFilter`` selects, all for ``None``."""
    if given is None:
        return lambda _: True
    value = given.value.raw if isinstance(given.value, Principal) else given.value
    match given.tag:
        case "ByPublisher":
            return lambda it: it.publisher == value
        case "BySubscriber":
            return lambda it: it.subscriber == value
        case "ByBroadcaster":
            return lambda it: it.broadcaster == value
        case "ByNamespace":
            return lambda it: it.namespace == value
    return lambda it: it.id == value


def replay_status(replay: EventReplay, caller: bytes, sent: int) -> dict[str, object]:
    """Return a ``ReplayStatus``; the configuration is shown to the subscriber and to those who serve it.

    ``sent`` is the number of notifications sent to the subscriber so far.
    """
    may_see = caller in {replay.subscriber, replay.publisher, replay.broadcaster, replay.relay}
    stats = (
        (REPLAY_SENT, nat(sent)),
        (REPLAY_SKIPPED, nat(replay.skipped)),
        (REPLAY_REGISTERED, nat(replay.registered_ns)),
    )
    return {
        "replayId": replay.id,
        "namespace": replay.namespace,
        "config": pairs_of(replay.config if may_see else ()),
        "stats": pairs_of(stats),
        "range": {0: replay.start, 1: replay.end},
        "status": replay.state(sent),
    }
