"""The subscriber of ICRC-72: it hands each event to its handler once, in the order of its chain."""

from relaycast_gateway.icrc.subscriber.subscriber import EventSubscriber

__all__ = ["EventSubscriber"]
