"""An AMQP 1.0 container of our own, which does with a message what the name of its node says.

Nodes: ``accept``, ``reject``, ``release``, ``modify``, ``ignore`` (no disposition); ``absent`` does not exist.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proton import Condition, Delivery, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

from brokers.broker_processes import Certificate, free_port

STATES = {"reject": Delivery.REJECTED, "release": Delivery.RELEASED, "modify": Delivery.MODIFIED}


class AmqpPeer(MessagingHandler):  # type: ignore[misc]
    """Keeps every link and every message that came."""

    def __init__(self, port: int, tls: Certificate | None, largest: int | None) -> None:
        super().__init__(auto_accept=False)
        self.port = port
        self.links: list[tuple[str, str, Any]] = []
        self.messages: list[Any] = []
        self.were_settled: list[bool] = []
        self.listening = threading.Event()
        self.took = threading.Semaphore(0)
        self._tls = tls
        self._largest = largest
        self._injector = EventInjector()
        self._acceptor: Any = None
        self._connections: list[Any] = []

    def on_start(self, event: Any) -> None:
        domain = None
        if self._tls is not None:
            domain = SSLDomain(SSLDomain.MODE_SERVER)
            domain.set_credentials(str(self._tls.certificate), str(self._tls.key), None)
        self._acceptor = event.container.listen(f"127.0.0.1:{self.port}", domain)
        event.container.selectable(self._injector)
        self.listening.set()

    def on_connection_opening(self, event: Any) -> None:
        self._connections.append(event.connection)

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        self.links.append((link.name, link.remote_target.address, link.remote_properties))
        link.source.copy(link.remote_source)
        if link.remote_target.address == "absent":
            return
        link.target.copy(link.remote_target)
        if self._largest is not None:
            link.max_message_size = self._largest

    def on_link_opened(self, event: Any) -> None:
        if event.link.remote_target.address == "absent":
            event.link.condition = Condition("amqp:not-found", "no such node")
            event.link.close()

    def on_message(self, event: Any) -> None:
        event.message.body = bytes(event.message.body)  # what the library gives lies in memory that it frees
        self.messages.append(event.message)
        self.were_settled.append(bool(event.delivery.settled))
        address = event.link.remote_target.address
        if address == "reject":
            event.delivery.local.condition = Condition("app:unwanted", "not this one")
        if address != "ignore":
            event.delivery.update(STATES.get(address, Delivery.ACCEPTED))
            event.delivery.settle()
        self.took.release()

    def on_stop(self, _event: object) -> None:
        self._acceptor.close()
        for connection in self._connections:
            connection.close()
        self._injector.close()

    def on_hang_up(self, _event: object) -> None:
        for connection in self._connections:
            connection.close()

    def hang_up(self) -> None:
        self._injector.trigger(ApplicationEvent("hang_up"))

    def stop(self) -> None:
        self._injector.trigger(ApplicationEvent("stop"))

    def take(self) -> Any:
        assert self.took.acquire(timeout=10)
        return self.messages.pop(0)


@contextmanager
def amqp_peer(*, tls: Certificate | None = None, largest: int | None = None) -> Iterator[AmqpPeer]:
    peer = AmqpPeer(free_port(), tls, largest)
    thread = threading.Thread(target=Container(peer).run, name="amqp peer", daemon=True)
    thread.start()
    assert peer.listening.wait(10)
    try:
        yield peer
    finally:
        peer.stop()
        thread.join(10)
