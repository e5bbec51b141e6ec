"""Which hosts a sink may lead to: public ones, and those that the operator allows by name.

Law: an address is judged when it is connected to, not when it was written down. A sender connects to the addresses
that the guard returns and to no others, so that a name that resolves elsewhere the next time gains nothing. Every
further hop that a protocol announces (brokers of a cluster, a referral) is judged like the first.

Refused unless allowed: loopback, private, link-local, shared (carrier-grade NAT), multicast, reserved and
documentation ranges, and IPv6 addresses that carry such an IPv4 address (mapped, compatible, translated, NAT64, 6to4,
ISATAP). A name is refused if any of its addresses is.
"""

import asyncio
import re
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

LookUp = Callable[[str, int], list[str]]
"""Resolves a name to the texts of its addresses; ``OSError`` where it has none."""

LOOK_UP_SECONDS = 5.0
"""A look-up that takes longer counts as failed."""

LOOK_UPS_AT_ONCE = 64
"""Names resolved at a time, each in its own thread, so that slow ones block nothing else."""

_REFUSED_RANGES: tuple[tuple[IpNetwork, str], ...] = tuple(
    (ip_network(text), kind)
    for text, kind in [
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address (carrier-grade NAT)"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "a cloud's internal address"),  # Azure's wire server: public in form only
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a private address"),  # benchmarks of networks
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("64:ff9b:1::/48", "a private address"),  # NAT64 of a network's own
        ("100::/64", "a reserved address"),
        ("2001::/23", "a reserved address"),  # Teredo among them
        ("2001:db8::/32", "a documentation address"),
        ("3fff::/20", "a documentation address"),
        ("5f00::/16", "a reserved address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
    ]
)

_CARRIES_IPV4_LAST = tuple(map(IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""Compatible, translated and NAT64 addresses: the last 32 bits are an IPv4 address."""

_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = 0x5EFE
_NUMERIC = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")


class SinkRefused(ValueError):
    """A sink's host is not one that events may be sent to."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, reason)
        self.host = host
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"sink {shown}:{self.port} is refused: {self.reason}; --allow-sink {shown}:{self.port} allows it"


@lru_cache(maxsize=1_024)  # asked for each request
def literal_address(host: str) -> IpAddress | None:
    """Return the address that ``host`` spells, ``None`` for a name.

    Takes what resolvers take: brackets, zones, and IPv4 in 1 to 4 parts, each decimal, octal or hexadecimal. An
    IPv4-mapped address is returned as the IPv4 address that it stands for.
    """
    text = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host.removesuffix(".")
    if _NUMERIC.fullmatch(text):
        return _numeric_ipv4(text)
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return _unmapped(address)


@lru_cache(maxsize=1_024)
def refusal_of(address: IpAddress) -> str | None:
    """Return the kind of address that sinks may not have, such as ``a loopback address``; ``None`` for a public one."""
    address = _unmapped(address)
    for network, kind in _REFUSED_RANGES:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, IPv4Address):
        return None
    if address.scope_id is not None:
        return "an address with a zone"
    carried = _carried_ipv4(address)
    kind_of_carried = None if carried is None else refusal_of(carried)
    return None if kind_of_carried is None else f"an IPv6 form of {kind_of_carried}"


def system_look_up(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class SinkGuard:
    """Judges hosts and addresses of sinks.

    ``allow`` holds names (``sink.internal``), addresses (``127.0.0.1``, ``::1``), either with a port
    (``localhost:8080``, ``[::1]:8080``), and networks (``10.1.0.0/16``). A name that is allowed may resolve to
    anything. ``ValueError`` for an entry that is none of these.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        look_up: LookUp = system_look_up,
        look_up_seconds: float = LOOK_UP_SECONDS,
    ) -> None:
        self._networks: list[tuple[IpNetwork, int | None]] = []
        self._names: set[tuple[str, int | None]] = set()
        self._look_up = look_up
        self._look_up_seconds = look_up_seconds
        self._pool = ThreadPoolExecutor(LOOK_UPS_AT_ONCE, "sink-names")
        self._asked: dict[tuple[str, int], Future[list[tuple[str, int]]]] = {}
        """Names being resolved: one thread each, however many callers wait."""

        for entry in allow:
            self._add(entry)

    def close(self) -> None:
        """Shut down the threads that resolve names. No name can be resolved afterwards."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def check_host(self, host: str, port: int) -> None:
        """Raise ``SinkRefused`` for a host that may not be a sink.

        A name that does not resolve now passes: it is judged again when it is connected to.
        """
        with suppress(OSError):
            await self.resolve(host, port)

    def addresses(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return the addresses to connect to, all of them judged, at least one. Blocks while a name is resolved.

        Raises ``SinkRefused``, and ``OSError`` where the name does not resolve.
        """
        literal = self.judge_literal(host, port)
        if literal is not None:
            return [(literal, port)]
        name = _plain_name(host, port)
        found = self._look_up(name, port)
        if not found:
            raise OSError(f"{name} has no address")
        if not self._allows_name(name, port):
            for text in found:
                self._judge(_address(text), port, host=name)
        return [(text, port) for text in found]

    async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
        """Non-blocking ``addresses``; ``OSError`` also for a name that takes too long."""
        literal = self.judge_literal(host, port)
        if literal is not None:
            return [(literal, port)]
        place = host, port
        asked = self._asked.get(place)
        if asked is None:
            asked = self._asked[place] = self._pool.submit(self.addresses, host, port)
            asked.add_done_callback(lambda _: self._asked.pop(place, None))
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()

        def answer() -> None:
            if not answered.done():
                answered.set_result(None)

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(answer)

        asked.add_done_callback(tell)
        try:
            await asyncio.wait_for(answered, self._look_up_seconds)
        except TimeoutError:
            raise OSError(f"{host} was not resolved within {self._look_up_seconds:g} s") from None
        return asked.result()

    def judge_literal(self, host: str, port: int) -> str | None:
        """Return the canonical text of an address, ``None`` for a name; ``SinkRefused`` for a refused address."""
        literal = literal_address(host)
        if literal is None:
            return None
        self._judge(literal, port, host=host)
        return str(literal)

    def check_address(self, ip: str, port: int) -> None:
        """Raise ``SinkRefused`` for an address that may not be connected to; ``ip`` is no name."""
        self._judge(_address(ip), port, host=ip)

    def _judge(self, address: IpAddress, port: int, *, host: str) -> None:
        kind = refusal_of(address)
        if kind is None or self._allows_address(address, port):
            return
        is_name = literal_address(host) is None
        raise SinkRefused(host, port, f"the name resolves to {kind}" if is_name else f"it is {kind}")

    def _allows_address(self, address: IpAddress, port: int) -> bool:
        plain = _unmapped(address)
        return any(
            allowed_port in {None, port} and plain.version == network.version and plain in network
            for network, allowed_port in self._networks
        )

    def _allows_name(self, name: str, port: int) -> bool:
        return (name, None) in self._names or (name, port) in self._names

    def _add(self, entry: str) -> None:
        if "/" in entry:
            try:
                self._networks.append((ip_network(entry), None))
            except ValueError as error:
                raise _no_sink(entry) from error
            return
        host, port = _host_and_port(entry)
        literal = literal_address(host)
        if literal is not None:
            self._networks.append((ip_network(literal), port))
            return
        if ":" in host or not re.fullmatch(r"[^\s/@\[\]*]+", host):
            raise _no_sink(entry)
        try:
            self._names.add((_plain_name(host, port or 0), port))
        except SinkRefused as error:
            raise _no_sink(entry) from error


def _no_sink(entry: str) -> ValueError:
    return ValueError(f"--allow-sink: got {entry!r}, expected HOST, HOST:PORT or a network such as 10.1.0.0/16")


def _host_and_port(entry: str) -> tuple[str, int | None]:
    bracketed = re.fullmatch(r"(\[[^\]]*\])(?::(\d{1,5}))?", entry)
    named = re.fullmatch(r"([^:]*):(\d{1,5})", entry)
    found = bracketed or named
    if found is None:
        return entry, None
    port = None if found[2] is None else int(found[2])
    if port is not None and not 0 < port <= 65_535:
        raise _no_sink(entry)
    return found[1], port


def _plain_name(host: str, port: int) -> str:
    """Return a name as resolvers compare it: lower case, IDNA, without the dot at the end."""
    try:
        name = host.encode("idna").decode().lower().removesuffix(".")
    except UnicodeError:
        name = ""
    if not name or not name.isprintable() or " " in name:
        raise SinkRefused(host, port, "it is no host name")
    return name


def _numeric_ipv4(text: str) -> IPv4Address | None:
    """Return the address that ``inet_aton`` reads, ``None`` where it reads none."""
    try:
        return IPv4Address(socket.inet_aton(text))
    except (OSError, AddressValueError):
        return None


def _address(text: str) -> IpAddress:
    address = literal_address(text)
    if address is None:
        raise SinkRefused(text, 0, "it is no address")
    return address


def _unmapped(address: IpAddress) -> IpAddress:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _carried_ipv4(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFF_FFFF)
    if any(address in network for network in _CARRIES_IPV4_LAST) or number >> 32 & 0xFCFF_FFFF == _ISATAP:
        return IPv4Address(number & 0xFFFF_FFFF)
    return None
