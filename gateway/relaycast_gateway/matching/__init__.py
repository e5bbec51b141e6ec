"""Which events a subscription selects: predicates that every dialect compiles to."""

from relaycast_gateway.matching.topics import Match, TopicPattern

__all__ = ["Match", "TopicPattern"]
