"""Who may talk to the server: Host and Origin of a request, and bearer tokens.

Law: closed by default. A stranger's page can reach a server on loopback from a browser, so an ``Origin`` must be known.
A stranger's name can be made to lead to loopback (DNS rebinding), so a ``Host`` must be known too. An address of
numbers cannot be rebound. With tokens every request has to carry one. A token stands for a name and a role: an
``admin`` sees and changes everybody's subscriptions, a ``user`` those of its own name.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from ipaddress import ip_address
from pathlib import Path
from stat import S_IMODE
from urllib.parse import urlsplit

from relaycast.refusal import BadInput, nearest, shown
from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE, Caller
from relaycast_gateway.principal import ANONYMOUS, principal_of

LOCALHOST = "localhost"

KNOWN_ORIGINS = ("https://polkadot.js.org",)
"""Beside pages of this machine: what a Substrate node lets in by default."""

SHORTEST_TOKEN = 16
LONGEST_NAME = 64
ROLES = ("admin", "user")
OTHERS_MAY_READ = 0o077


@dataclass(frozen=True, slots=True)
class Access:
    """What is let in; without ``tokens`` everybody who can reach the server."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset(KNOWN_ORIGINS)
    tokens: tuple[bytes, ...] = field(default=(), repr=False)
    callers: Mapping[bytes, Caller] = field(default_factory=dict, repr=False)
    """Who a token stands for; others are admins."""

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
        if self.caller(authorization) is None:
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

    def caller(self, authorization: str | None) -> Caller | None:
        """Return whom a request comes from, ``None`` where its token is unknown."""
        if not self.tokens:
            return EVERYBODY_HERE
        given = token_in(authorization or "")
        known = [token for token in self.tokens if hmac.compare_digest(given, token)]  # all of them, whichever fits
        return (self.callers.get(known[0]) or Caller(name_of_token(known[0]), is_admin=True)) if known else None


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
    if not value.isascii():
        return b""  # no token has such characters, and neither encoding takes all of them
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return value.strip().encode() if scheme.lower() == "bearer" else b""


def name_of_token(token: bytes) -> str:
    """Return what the bearer of a token without a name is called: part of the token's hash."""
    return f"token-{blake2s(token, digest_size=6).hexdigest()}"


def read_tokens(file: str) -> dict[bytes, Caller]:
    """Return the tokens in ``file`` and whom they stand for; raises ``BadInput``.

    A line is ``TOKEN`` and any of ``name=NAME``, ``role=user`` and ``principal=TEXT`` behind it; without a role it is
    an admin's. Lines with ``#`` are comments.
    """
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
    given = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not given:
        raise BadInput(f"--token-file {file}", "no token", "a token on each line")
    found: dict[bytes, Caller] = {}
    for number, (token, *labels) in enumerate(given, 1):
        at = f"--token-file {file}: token {number}"
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise BadInput(at, f"{len(token)} characters", f"at least {SHORTEST_TOKEN} printable ASCII characters")
        if token.encode() in found:
            raise BadInput(at, "a token that stands above", "each token once")
        found[token.encode()] = _caller_of(at, token, labels)
    return found


def _caller_of(at: str, token: str, labels: list[str]) -> Caller:
    said = {"name": name_of_token(token.encode()), "role": "admin", "principal": ""}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or key not in said:
            raise BadInput(at, "text behind the token", "name=NAME, role=admin or role=user, principal=TEXT")
        said[key] = value
    if said["role"] not in ROLES:
        raise BadInput(f"{at}: role", shown(said["role"]), "admin or user", nearest(said["role"], list(ROLES)))
    name = said["name"]
    if not name or len(name) > LONGEST_NAME or not name.isascii() or not name.isprintable():
        raise BadInput(f"{at}: name", shown(name), f"1 to {LONGEST_NAME} printable ASCII characters")
    return Caller(name, is_admin=said["role"] == "admin", principal=_principal(at, said["principal"]))


def _principal(at: str, text: str) -> bytes | None:
    if not text:
        return None
    try:
        found = principal_of(text)
    except ValueError:
        found = ANONYMOUS
    if found == ANONYMOUS:
        raise BadInput(f"{at}: principal", shown(text), "the text of a principal, such as aaaaa-aa")
    return found


def access_for(hosts: Iterable[str], origins: Iterable[str], token_file: str | None) -> Access:
    """Return what is let in beside this machine; raises ``BadInput`` for a token file that will not do."""
    callers = {} if token_file is None else read_tokens(token_file)
    return Access(frozenset(hosts), frozenset({*KNOWN_ORIGINS, *origins}), tuple(callers), callers)
