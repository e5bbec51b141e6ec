"""WAMP: a router whose topics are the events of the log, with their whole history."""

from relaycast_gateway.wamp.errors import WampProtocolError as WampProtocolError
from relaycast_gateway.wamp.serializers import deserialize as deserialize
from relaycast_gateway.wamp.serializers import serialize as serialize
