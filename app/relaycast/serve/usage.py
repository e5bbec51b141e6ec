"""Each URL with one line that shows how to use it: on the terminal, and on the live page."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageLine:
    """A URL, what it is, and a command that uses it."""

    url: str
    what: str
    use: str


def chain_lines(
    host: str, relay: str, parachains: Mapping[int, str], *, token: bool = False, secure: bool = False
) -> list[UsageLine]:
    """Return the lines of all chains of a server at ``host`` (name and port)."""
    s = "s" if secure else ""
    secret = "-H 'authorization: Bearer TOKEN' " if token else ""
    ask = """-H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"chain_getHeader"}'"""
    sockets = {f"ws{s}://{host}": relay}
    sockets |= {f"ws{s}://{host}/para/{para_id}": name for para_id, name in parachains.items()}
    lines = [UsageLine(url, name, f"https://polkadot.js.org/apps/?rpc={url}") for url, name in sockets.items()]
    url = f"http{s}://{host}"
    lines.append(UsageLine(url, f"{relay}, by POST", f"curl {secret}{ask} {url}"))
    lines.append(UsageLine(f"{url}/", "live page", "open it in a browser"))
    return lines
