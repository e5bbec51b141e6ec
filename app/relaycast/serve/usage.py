"""Each URL with one line that shows how to use it: on the terminal, and on the live page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relaycast_gateway.wamp.router_config import RealmConfig

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class UsageLine:
    """A URL, what it is, and a command that uses it."""

    url: str
    what: str
    use: str


@dataclass(frozen=True, slots=True)
class ServedAt:
    """Where a server is reached: ``host`` is name and port."""

    host: str
    has_tokens: bool = False
    is_secure: bool = False

    def url(self, scheme: str) -> str:
        return f"{scheme}{'s' if self.is_secure else ''}://{self.host}"

    @property
    def curl(self) -> str:
        """The beginning of a command."""
        return "curl -H 'authorization: Bearer TOKEN'" if self.has_tokens else "curl"


def chain_lines(place: ServedAt, relay: str, parachains: Mapping[int, str], *, dialect: str = "all") -> list[UsageLine]:
    """Return the lines of all chains of a server; polkadot.js and ``chain_getHeader`` need the legacy methods."""
    is_new = dialect == "new"
    method = "archive_v1_finalizedHeight" if is_new else "chain_getHeader"
    ask = f"""-H 'content-type: application/json' -d '{{"jsonrpc":"2.0","id":1,"method":"{method}"}}'"""
    sockets = {place.url("ws"): relay}
    sockets |= {f"{place.url('ws')}/para/{para_id}": name for para_id, name in parachains.items()}
    client = 'PAPI: createWsClient("{}")' if is_new else "https://polkadot.js.org/apps/?rpc={}"
    lines = [UsageLine(url, name, client.format(url)) for url, name in sockets.items()]
    url = place.url("http")
    return [*lines, UsageLine(url, f"{relay}, by POST", f"{place.curl} {ask} {url}")]


def subscription_lines(place: ServedAt, allowed_sinks: Sequence[str] = ()) -> list[UsageLine]:
    """Return the line of the gateway: how to subscribe where a sink on this machine is allowed, else how to list."""
    url = f"{place.url('http')}/subscriptions"
    host = next((sink for sink in allowed_sinks if "/" not in sink), None)
    if host is None:
        return [UsageLine(url, "CloudEvents subscriptions", f"{place.curl} {url}")]
    bracketed = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
    body = f"""-d '{{"protocol":"HTTP","sink":"http://{bracketed}/"}}'"""
    use = f"{place.curl} -H 'content-type: application/json' {body} {url}"
    return [UsageLine(url, "CloudEvents subscriptions", use)]


def wamp_lines(place: ServedAt, realm: "RealmConfig", rawsocket_port: int | None = None) -> list[UsageLine]:
    """Return the lines of the WAMP router: how to read a history of ``realm`` by WebSocket and by RawSocket."""
    urls = {f"{place.url('ws')}/wamp": "WAMP"}
    if rawsocket_port is not None:
        name = place.host.rpartition(":")[0]
        urls[f"tcp{'s' if place.is_secure else ''}://{name}:{rawsocket_port}"] = "WAMP over RawSocket"
    more = "" if realm.name == "relaycast" else f" --realm {realm.name}"
    more += " --token-file FILE" if place.has_tokens or realm.anonymous_role is None else ""
    use = f"relaycast history {realm.chain_prefix}data.published. --limit 10 --reverse --url"
    return [UsageLine(url, what, f"{use} {url}{more}") for url, what in urls.items()]


def icrc_lines(place: ServedAt, chain_prefix: str = "", allowed_sinks: Sequence[str] = ()) -> list[UsageLine]:
    """Return the line of the canisters: how to listen where a port of this machine may be called, else how to query."""
    url = f"{place.url('http')}/icrc"
    more = f"--url {place.url('http')}" + (" --token-file FILE" if place.has_tokens else "")
    sinks = [sink.partition(":") for sink in allowed_sinks]
    ports = [port for host, _, port in sinks if host in {LOOPBACK, f"{LOOPBACK}/8", f"{LOOPBACK}/32"}]
    if not ports:
        verb = "call icrc72_get_publications '(record {})'"
    else:
        verb = f"listen {chain_prefix}.data.published" + (f" --port {ports[0]}" if ports[0] else "")
    return [UsageLine(url, "ICRC-72", f"relaycast icrc {verb} {more}")]


def page_line(place: ServedAt) -> UsageLine:
    """Return the line of the live page."""
    return UsageLine(f"{place.url('http')}/", "live page", "open it in a browser")
