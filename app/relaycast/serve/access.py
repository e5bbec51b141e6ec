"""Who may talk to the server: Host and Origin of a request, and bearer tokens.

Law: closed by default. A page of a stranger can reach a server on loopback from a browser, so an ``Origin`` must be
known; a stranger's name can be made to lead to loopback (DNS rebinding), so a ``Host`` must be known too. An address
of numbers cannot be rebound. With tokens every request has to carry one.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from stat import S_IMODE
from urllib.parse import urlsplit

from relaycast.refusal import BadInput, shown

LOCALHOST = "localhost"

KNOWN_ORIGINS = ("https://polkadot.js.org",)
"""Beside pages of this machine: what a Substrate node lets in by default."""

SHORTEST_TOKEN = 16
OTHERS_MAY_READ = 0o077


@dataclass(frozen=True, slots=True)
class Access:
    """What is let in; without ``tokens`` everybody who can reach the server."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset(KNOWN_ORIGINS)
    tokens: tuple[bytes, ...] = field(default=(), repr=False)

    def refusal(self, host: str, origin: str | None, authorization: str | None) -> tuple[int, str] | None:
        """Return status and reason where a request is not let in."""
        name = host_name(host)
        if not (is_address(name) or is_local_name(name) or name in self.hosts):
            return 403, f"Host: got {shown(host)}, expected localhost, an address, or a name given with --allow-host"
        if origin is not None and not self._knows_origin(origin, host):
            return (
                403,
                f"Origin: got {shown(origin)}, expected a page of this machine, or one given with --allow-origin",
            )
        if self.tokens and not self._knows_token(authorization):
            return 401, "Authorization: expected Bearer and a token of the token file"
        return None

    def _knows_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme not in {"http", "https"}:
            return False
        return is_local_name(name) or is_loopback(name) or origin in self.origins or parts.netloc == host

    def _knows_token(self, authorization: str | None) -> bool:
        given = token_in(authorization or "")
        return sum(hmac.compare_digest(given, token) for token in self.tokens) > 0  # all of them, whichever fits


def host_name(host: str) -> str:
    """Return the name or address in a ``Host``, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_local_name(name: str) -> bool:
    return name == LOCALHOST or name.endswith(f".{LOCALHOST}")


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Return whether ``name`` leads to this machine alone."""
    return name == LOCALHOST or (is_address(name) and ip_address(name).is_loopback)


def token_in(authorization: str) -> bytes:
    """Return the token of a header: ``Bearer TOKEN``, or ``Basic`` with the token as password, as browsers send it."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return value.strip().encode() if scheme.lower() == "bearer" else b""


def read_tokens(file: str) -> tuple[bytes, ...]:
    """Return the tokens in ``file``, one on a line; raises ``BadInput``. Lines with ``#`` are comments."""
    place = Path(file)
    try:
        mode = S_IMODE(place.stat().st_mode)
        lines = place.read_text("utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"--token-file {file}", (error.strerror or "an error").lower(), "a file with tokens") from None
    except UnicodeDecodeError:
        raise BadInput(f"--token-file {file}", "bytes that are no text", "a token on each line") from None
    if mode & OTHERS_MAY_READ:
        raise BadInput(f"--token-file {file}", f"mode {mode:04o}", f"0600: chmod 600 {file}")
    tokens = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for number, token in enumerate(tokens, 1):
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            expected = f"at least {SHORTEST_TOKEN} printable characters without spaces"
            raise BadInput(f"--token-file {file}: token {number}", f"{len(token)} characters", expected)
    if not tokens:
        raise BadInput(f"--token-file {file}", "no token", "a token on each line")
    return tuple(token.encode() for token in tokens)


def access_for(hosts: Iterable[str], origins: Iterable[str], token_file: str | None) -> Access:
    """Return what is let in beside this machine; raises ``BadInput`` for a token file that will not do."""
    tokens = () if token_file is None else read_tokens(token_file)
    return Access(frozenset(hosts), frozenset({*KNOWN_ORIGINS, *origins}), tokens)
