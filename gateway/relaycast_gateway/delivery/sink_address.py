"""A sink's address taken apart: scheme, hosts, path, and the secrets that its userinfo and its query may hold.

Law: what is shown and logged has a mask in place of each secret. Userinfo goes with the secrets of a subscription; the
query is part of the address that a sender asks for. Several hosts stand between commas:
``kafka://one:9092,two:9092/topic``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from relaycast_gateway.delivery.secret_names import MASK, masked_query

DEFAULT_PORTS: Mapping[str, int] = {
    "http": 80,
    "https": 443,
    "mqtt": 1883,
    "mqtts": 8883,
    "ws": 80,
    "wss": 443,
    "amqp": 5672,
    "amqps": 5671,
    "kafka": 9092,
    "kafkas": 9093,
    "nats": 4222,
    "tls": 4222,
}
"""Every scheme that a sink may have, with the port that it implies."""

_FORM = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_NAME = re.compile(
    r"(?=.{1,253}\.?\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.?"
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class SinkAddress:
    """Where a sink is. ``path`` and ``query`` are as written, a name is without brackets and in lower case."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    path: str = ""
    query: str | None = field(default=None, repr=False)
    userinfo: str | None = field(default=None, repr=False)

    @property
    def public(self) -> str:
        """The sink without its userinfo, its query as written."""
        return self._text("", self.query)

    @property
    def masked(self) -> str:
        """The sink with masks for its userinfo and for the secrets of its query."""
        query = None if self.query is None else masked_query(self.query)
        return self._text("" if self.userinfo is None else f"{MASK}@", query)

    @property
    def secrets(self) -> dict[str, str]:
        """What the userinfo says, as a credential: ``identifier`` and ``secret``, or neither."""
        if self.userinfo is None:
            return {}
        user, _, password = self.userinfo.partition(":")
        return {"identifier": unquote(user), "secret": unquote(password)}

    def _text(self, prefix: str, query: str | None) -> str:
        hosts = ",".join(host_and_port(host, port) for host, port in self.hosts)
        return f"{self.scheme}://{prefix}{hosts}{self.path}{'' if query is None else f'?{query}'}"


def host_and_port(host: str, port: int) -> str:
    """Return both as one text, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_sink(sink: str) -> SinkAddress:
    """Take a sink apart; ``ValueError`` says what was expected and shows no secret."""
    if not _CHARACTERS.fullmatch(sink):
        raise ValueError("a URI of printable ASCII, other characters percent-encoded")
    found = _FORM.fullmatch(sink)
    if found is None:
        raise ValueError("a URI such as https://example.com/events, without a fragment")
    scheme = found["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"a URI whose scheme is one of {', '.join(DEFAULT_PORTS)}")
    userinfo, at, authority = found["authority"].rpartition("@")
    if "@" in userinfo:
        raise ValueError("a URI with at most one @ before its host, others percent-encoded")
    hosts = tuple(_host(part, DEFAULT_PORTS[scheme]) for part in authority.split(","))
    return SinkAddress(scheme, hosts, found["path"], found["query"], userinfo if at else None)


def credential_of(sink: SinkAddress, secrets: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the user and the password to present: of ``secrets``, else those of the sink's userinfo."""
    known = secrets if "identifier" in secrets else sink.secrets
    return known.get("identifier"), known.get("secret")


def _host(text: str, default_port: int) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None:
        raise ValueError("a URI with a host, such as example.com, 192.0.2.1:8080 or [2001:db8::1]")
    port = default_port if found["port"] is None else int(found["port"])
    if not 0 < port <= 65_535:
        raise ValueError("a URI with a port from 1 to 65535")
    host = unquote(found["host"]).lower()
    if host.startswith("["):
        return host.strip("[]"), port
    if not _NAME.fullmatch(host):
        raise ValueError(
            "a URI whose host is a name of DNS, such as example.com: labels of 1 to 63 letters, digits, - and _"
        )
    return host, port
