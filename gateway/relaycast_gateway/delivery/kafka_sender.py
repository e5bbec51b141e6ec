"""Sends to a Kafka topic: the broker's answer to the produce request acknowledges, as far as ``acks`` asks for one.

Schemes: ``kafka``, and ``kafkas`` for TLS. The guard judges the brokers that the cluster names in its metadata
before each connection; they are connected to at the judged address only.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Coroutine, Mapping
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from relaycast_gateway.delivery.connected_sender import CLOSE_SECONDS, CannotSend, ConnectedSender, SinkPlace, told
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, SendOutcome
from relaycast_gateway.delivery.sink_address import host_and_port
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused
from relaycast_gateway.delivery.wire_message import WireMessage

REQUEST_MILLISECONDS = 15_000
"""For one request, and for a message to leave the producer."""

LARGEST_REQUEST = 16 * 1024 * 1024
"""Bytes; a broker's own limit, 1 MiB as a rule, is told by the broker."""

logging.getLogger("aiokafka").addHandler(
    logging.NullHandler()
)  # an unreachable broker is an outcome, not a line on stderr


class KafkaSender(ConnectedSender):
    """Sends to one topic of one cluster."""

    async def open(self, places: list[SinkPlace]) -> "KafkaConnection":
        connection = KafkaConnection(self, places)
        try:
            await connection.start()
        except BaseException:
            await asyncio.shield(connection.close())
            raise
        return connection


class _NamedContext(ssl.SSLContext):
    """Checks a certificate against the name that an address was resolved from."""

    names: Mapping[str, str]

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        asked = str(options.get("server_hostname"))
        return super().wrap_bio(*arguments, **{**options, "server_hostname": self.names.get(asked, asked)})


class KafkaConnection:
    """A producer and its connections to the brokers."""

    def __init__(self, sender: KafkaSender, places: list[SinkPlace]) -> None:
        self._settings = sender.settings
        self._names = {ip: host for host, ip, _ in places}
        self._is_open = False
        has_tls = sender.address.scheme == "kafkas"
        context = None
        if has_tls:
            context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
            context.names = self._names
            context.load_default_certs()
        has_credential = sender.user is not None
        acks: str | int = self._settings["acks"]
        self._producer = AIOKafkaProducer(
            bootstrap_servers=[host_and_port(ip, port) for _, ip, port in places],
            client_id=self._settings["clientid"],
            acks=acks if acks == "all" else int(acks),
            request_timeout_ms=REQUEST_MILLISECONDS,
            max_request_size=LARGEST_REQUEST,
            security_protocol=("SASL_" if has_credential else "") + ("SSL" if has_tls else "PLAINTEXT"),
            ssl_context=context,
            sasl_mechanism="PLAIN",
            sasl_plain_username=sender.user or "",
            sasl_plain_password=sender.password or "",
        )
        self._refused: asyncio.Future[SinkRefused] = asyncio.get_running_loop().create_future()
        self._judge_brokers(sender.guard)

    @property
    def is_open(self) -> bool:
        return self._is_open and not self._refused.done()

    async def start(self) -> None:
        try:
            await self._unless_refused(self._producer.start())
        except (KafkaError, ValueError) as error:
            raise CannotSend(_outcome_of(error)) from error
        self._is_open = True

    async def send(self, message: WireMessage) -> SendOutcome:
        headers = [(name, str(value).encode()) for name, value in message.properties]
        if message.content_type is not None:
            headers.append(("content-type", message.content_type.encode()))
        topic = self._settings["topicname"]
        try:
            await self._unless_refused(
                self._producer.send_and_wait(topic, message.body, key=message.key, headers=headers)
            )
        except SinkRefused as refused:
            return Retryable(f"the cluster names a broker that is refused: {refused.reason}")
        except KafkaError as error:
            return _outcome_of(error)
        return Accepted()

    async def close(self) -> None:
        """Stop the producer. Messages that nobody waits for fail first; otherwise it would flush them."""
        self._is_open = False
        producer = self._producer
        producer._message_accumulator.fail_all(KafkaError("the sender is closed"))
        with contextlib.suppress(Exception):
            await asyncio.wait_for(producer.stop(), CLOSE_SECONDS)
        routine = producer._sender.sender_task
        if routine is not None and not routine.done():
            routine.cancel()
            await asyncio.wait({routine}, timeout=CLOSE_SECONDS)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(producer.client.close(), CLOSE_SECONDS)

    async def _unless_refused(self, work: Coroutine[Any, Any, object]) -> None:
        """Do the work; raise ``SinkRefused`` as soon as a broker that it needs is refused."""
        working: asyncio.Future[Any] = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {working, self._refused}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise self._refused.result()
            await working
        finally:
            if not working.done():
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await working

    def _judge_brokers(self, guard: SinkGuard) -> None:
        """Let the client connect to judged addresses only, whatever brokers the metadata name."""
        client = self._producer.client
        cluster = client.cluster
        connect, named = client._get_conn, cluster.broker_metadata
        judged: dict[int | str, str] = {}

        async def connect_judged(node: int | str, **options: Any) -> Any:
            broker = named(node)
            held = client._conns.get((node, options.get("group", ConnectionGroup.DEFAULT)))
            if broker is not None and (held is None or not held.connected()):
                try:
                    judged[node] = (await guard.resolve(broker.host, broker.port))[0][0]
                except SinkRefused as refused:
                    if not self._refused.done():
                        self._refused.set_result(refused)
                    return None
                except OSError:
                    return None
                self._names[judged[node]] = broker.host
            return await connect(node, **options)

        def judged_metadata(node: int | str) -> Any:
            broker = named(node)
            return broker._replace(host=judged[node]) if broker is not None and node in judged else broker

        client._get_conn = connect_judged
        cluster.broker_metadata = judged_metadata


def _outcome_of(error: Exception) -> SendOutcome:
    if isinstance(error, MessageSizeTooLargeError) or not isinstance(error, KafkaError):
        return Refused(told(error))
    # Errors without a number are the client's own: no connection, no answer.
    is_told_by_broker = getattr(error, "errno", None) is not None
    return Refused(told(error)) if is_told_by_broker and not error.retriable else Retryable(told(error))
