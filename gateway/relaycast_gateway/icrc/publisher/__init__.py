"""The publisher of ICRC-72: it numbers events, links them to chains and hands them to broadcasters."""

from relaycast_gateway.icrc.publisher.publisher import EventPublisher

__all__ = ["EventPublisher"]
