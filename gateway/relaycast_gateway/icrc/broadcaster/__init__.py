"""The broadcaster of ICRC-72."""

from relaycast_gateway.icrc.broadcaster.broadcaster import Broadcaster
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.broadcaster.replaying import AssignedReplay

__all__ = ["AssignedReplay", "BroadcastPolicy", "Broadcaster", "BroadcasterContext"]
