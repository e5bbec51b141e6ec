"""Sends over MQTT 3.1.1 and 5: PUBACK or PUBCOMP acknowledges; at quality 0 the message counts when it is written.

Schemes: ``mqtt``, ``mqtts`` (TLS), ``ws`` and ``wss`` (WebSocket). The network thread belongs to the MQTT library; its
callbacks come to the event loop. A server's reference to another server is never followed, and proxies that the
environment names are not used: the socket is connected before the library gets it.
"""

import asyncio
import contextlib
import secrets
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from relaycast_gateway.delivery.connected_sender import CLOSE_SECONDS, CannotSend, ConnectedSender, SinkPlace, first_of
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, SendOutcome
from relaycast_gateway.delivery.wire_message import WireMessage

KEEP_ALIVE_SECONDS = 30
HANDSHAKE_SECONDS = 5.0
"""For TLS and WebSocket, which the library negotiates while it blocks."""

FAILED = 0x80
"""Reason codes from here on are failures. Source: MQTT 5, 2.4."""

PERMANENT = frozenset({0x81, 0x82, 0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x90, 0x95, 0x99, 0x9A, 0x9B, 0x9D})
"""Malformed, protocol error, version, client id, credentials, not authorized, banned, authentication method, topic,
too large, payload format, retain, quality, server moved: what no later attempt changes."""

_ELSEWHERE = frozenset({0x9C, 0x9D})
_ROOM_FOR_PROPERTIES = 64


class MqttSender(ConnectedSender):
    """Sends to one topic of one broker."""

    async def open(self, places: list[SinkPlace]) -> "MqttConnection":
        return await first_of(places, self._connect)

    async def _connect(self, place: SinkPlace) -> "MqttConnection":
        loop = asyncio.get_running_loop()
        line = socket.socket(socket.AF_INET6 if ":" in place.ip else socket.AF_INET, socket.SOCK_STREAM)
        try:
            line.setblocking(False)
            await loop.sock_connect(line, (place.ip, place.port))
            line.settimeout(HANDSHAKE_SECONDS)
            if self.address.scheme in {"mqtts", "wss"}:
                line = ssl.create_default_context().wrap_socket(
                    line, server_hostname=place.host, do_handshake_on_connect=False
                )
            connection = MqttConnection(self, line)
            try:
                await connection.handshake(place)
            except BaseException:
                await connection.close()
                raise
        except BaseException:
            line.close()
            raise
        return connection


class _GivenSocketClient(mqtt.Client):
    """A client on an open connection, with TLS where the sink asks for it."""

    line: socket.socket

    def _create_socket_connection(self) -> socket.socket:
        return self.line

    def _ssl_wrap_socket(self, tcp_sock: socket.socket) -> ssl.SSLSocket:
        assert isinstance(tcp_sock, ssl.SSLSocket)
        return tcp_sock

    def close(self) -> None:
        """Wait for the network thread, then close the pair of sockets that woke it."""
        self.loop_stop()
        self._reset_sockets()


class MqttConnection:
    """A session with a broker."""

    def __init__(self, sender: MqttSender, line: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = sender.settings
        self._is_5 = sender.target.protocol == "MQTT5"
        self._greeted: asyncio.Future[ReasonCode] = self._loop.create_future()
        self._ended = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[SendOutcome]] = {}
        self._limits: Mapping[str, Any] = {}
        scheme = sender.address.scheme
        client = _GivenSocketClient(
            CallbackAPIVersion.VERSION2,
            client_id=f"relaycast-{secrets.token_hex(8)}",
            protocol=mqtt.MQTTv5 if self._is_5 else mqtt.MQTTv311,
            transport="websockets" if scheme in {"ws", "wss"} else "tcp",
            reconnect_on_failure=False,
        )
        client.line = self._line = line
        client.connect_timeout = HANDSHAKE_SECONDS
        if scheme in {"ws", "wss"}:
            query = "" if sender.address.query is None else f"?{sender.address.query}"
            client.ws_set_options(path=f"{sender.address.path or '/'}{query}")
        if isinstance(line, ssl.SSLSocket):
            client.tls_set_context(line.context)
        if sender.user is not None:
            client.username_pw_set(sender.user, sender.password or None)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        self._client = client

    @property
    def is_open(self) -> bool:
        return not self._ended.is_set() and self._client.is_connected()

    async def handshake(self, place: SinkPlace) -> None:
        """Negotiate TLS, WebSocket and MQTT. A cancelled one hangs up, and returns when nothing blocks."""
        connecting = self._loop.run_in_executor(None, self._negotiate, place)
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            self._hang_up()
            with contextlib.suppress(Exception):
                await connecting
            raise
        except mqtt.WebsocketConnectionError as error:
            raise CannotSend(Retryable(f"no WebSocket: {error}")) from error
        self._client.loop_start()
        code = await self._greeted
        if code.value >= FAILED:
            raise CannotSend(_outcome_of(code, "the broker refused the connection"))

    def _hang_up(self) -> None:
        """End whatever blocks on the line."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _negotiate(self, place: SinkPlace) -> None:
        if isinstance(self._line, ssl.SSLSocket):
            self._line.do_handshake()
        self._client.connect(place.host, place.port, KEEP_ALIVE_SECONDS)

    async def send(self, message: WireMessage) -> SendOutcome:
        settings = self._settings
        too_much = self._beyond_limits(message)
        if too_much is not None:
            return Refused(too_much)
        try:
            sent = self._client.publish(
                settings["topicname"], message.body, settings["qos"], settings["retain"], self._properties(message)
            )
        except ValueError as error:  # larger than any MQTT message
            return Refused(str(error))
        if sent.rc not in {MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_QUEUE_SIZE}:
            return Retryable(f"the message was not sent: {mqtt.error_string(sent.rc)}")
        waiting: asyncio.Future[SendOutcome] = self._loop.create_future()
        if self._ended.is_set():
            return Retryable("the broker closed the connection")
        self._waiting[sent.mid] = waiting
        try:
            return await waiting
        finally:
            self._waiting.pop(sent.mid, None)

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.disconnect()
        if self._greeted.done() and not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS)
        self._end("the sender is closed")
        self._hang_up()
        await asyncio.shield(self._loop.run_in_executor(None, self._client.close))
        self._line.close()

    def _properties(self, message: WireMessage) -> Properties | None:
        if not self._is_5:
            return None
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if message.content_type is not None:
            properties.ContentType = message.content_type
        if "expiry" in self._settings:
            properties.MessageExpiryInterval = self._settings["expiry"]
        own = self._settings.get("userproperties", {}).items()
        pairs = [(name, str(value)) for name, value in (*message.properties, *own)]
        if pairs:
            properties.UserProperty = pairs
        return properties

    def _beyond_limits(self, message: WireMessage) -> str | None:
        """Return which limit of the broker's greeting the message breaks: a broker ends the connection over it."""
        largest = self._limits.get("MaximumPacketSize")
        if largest is not None:
            pairs = (*message.properties, *self._settings.get("userproperties", {}).items())
            held = sum(len(name.encode()) + len(str(value).encode()) + 5 for name, value in pairs)
            packet = len(message.body) + held + len(self._settings["topicname"].encode()) + _ROOM_FOR_PROPERTIES
            if packet > largest:
                return f"the message has about {packet} bytes, the broker takes {largest}"
        if self._settings["qos"] > self._limits.get("MaximumQoS", 2):
            return f"the broker takes qos up to {self._limits['MaximumQoS']}, got {self._settings['qos']}"
        if self._settings["retain"] and self._limits.get("RetainAvailable", 1) == 0:
            return "the broker retains no messages"
        return None

    def _on_connect(
        self, _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, given: Properties | None
    ) -> None:
        limits = {} if given is None else given.json()  # type: ignore[no-untyped-call]
        self._tell(self._greet, code, limits)

    def _on_disconnect(
        self, _client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _given: Properties | None
    ) -> None:
        self._tell(self._end, f"the broker closed the connection: {code}")

    def _on_publish(
        self, _client: mqtt.Client, _data: object, mid: int, code: ReasonCode, _given: Properties | None
    ) -> None:
        self._tell(self._settle, mid, code)

    def _tell(self, what: Any, *args: object) -> None:
        """Run a callback in the event loop; a loop that is gone needs none."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *args)

    def _greet(self, code: ReasonCode, limits: Mapping[str, Any]) -> None:
        self._limits = limits
        if not self._greeted.done():
            self._greeted.set_result(code)

    def _settle(self, mid: int, code: ReasonCode) -> None:
        waiting = self._waiting.pop(mid, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(
                Accepted() if code.value < FAILED else _outcome_of(code, "the broker refused the message")
            )

    def _end(self, reason: str) -> None:
        self._ended.set()
        if not self._greeted.done():
            self._greeted.set_exception(OSError(reason))
            self._greeted.exception()  # it is read, even if nobody waits for it
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(Retryable(reason))
        self._waiting.clear()


def _outcome_of(code: ReasonCode, what: str) -> SendOutcome:
    named = f"{what}: {code}"
    if code.value in _ELSEWHERE:
        named += "; its reference to another server is not followed"
    return Refused(named) if code.value in PERMANENT else Retryable(named)
