"""Who a client is: anonymous, by a ticket, or by WAMP-CRA, with a secret that is never sent.

Law: the answer tells only whether a proof fits. A client that names an unknown authid is challenged like a user, with
the methods, the role and the salt of a decoy. Its proof is computed and compared like a user's. A challenge belongs to
one session and takes one proof. Proofs are compared in constant time. Secrets are in no text of these objects. Source:
WAMP specification, "Authentication", "Ticket-based Authentication" and "Challenge Response Authentication".
"""

import base64
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import pbkdf2_hmac, sha256, shake_256
from typing import Any, Literal

from relaycast_gateway import rfc3339
from relaycast_gateway.clock import Clock

AuthMethod = Literal["wampcra", "ticket", "anonymous"]
AUTH_METHODS: tuple[AuthMethod, ...] = ("wampcra", "ticket", "anonymous")
"""In the order in which the router prefers them by default: the one that sends no secret first."""

ANONYMOUS: AuthMethod = "anonymous"
PROVIDER = "static"
NONCE_BYTES = 16

MOST_ITERATIONS = 1_000_000
MOST_KEY_BYTES = 64
"""Bounds of the key that is derived from a salted secret: a longer derivation would stop the event loop."""


def sign(challenge: str, key: bytes) -> str:
    """Return the proof of WAMP-CRA: HMAC-SHA256 in base64."""
    return base64.b64encode(hmac.digest(key, challenge.encode(), "sha256")).decode()


def derived_key(secret: str, salt: str, *, iterations: int = 1_000, keylen: int = 32) -> bytes:
    """Return the key that a salted secret stands for: PBKDF2 with HMAC-SHA256, in base64."""
    return base64.b64encode(pbkdf2_hmac("sha256", secret.encode(), salt.encode(), iterations, keylen))


@dataclass(frozen=True, slots=True)
class Salting:
    """How a client makes its key of its secret."""

    salt: str
    iterations: int = 1_000
    keylen: int = 32

    def extra(self) -> dict[str, object]:
        return {"salt": self.salt, "iterations": self.iterations, "keylen": self.keylen}


@dataclass(frozen=True, slots=True)
class WampUser:
    """Someone who may join: a name, a role, and what proves them; a method without its proof cannot be used."""

    authid: str
    authrole: str
    ticket_digest: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    salting: Salting | None = field(default=None, repr=False)
    """Where given, ``key`` is the derived one."""

    principal: bytes | None = None
    """The principal of a bearer of a token in access lists; without one, realm and name determine it."""

    @classmethod
    def of(
        cls,
        authid: str,
        authrole: str,
        *,
        ticket: str | None = None,
        secret: str | None = None,
        salt: Salting | None = None,
    ) -> "WampUser":
        """Return the user with a ticket, with a secret for WAMP-CRA, or with both."""
        key = None
        if secret is not None:
            key = (
                secret.encode()
                if salt is None
                else derived_key(secret, salt.salt, iterations=salt.iterations, keylen=salt.keylen)
            )
        return cls(authid, authrole, None if ticket is None else _digest(ticket), key, salt)

    @classmethod
    def of_token(cls, authid: str, authrole: str, token: str, principal: bytes | None = None) -> "WampUser":
        """Return a user with ``token`` as ticket and secret, and with ``principal``."""
        return replace(cls.of(authid, authrole, ticket=token, secret=token), principal=principal)

    @property
    def methods(self) -> frozenset[AuthMethod]:
        """Return how the user can be authenticated."""
        ticket: set[AuthMethod] = {"ticket"} if self.ticket_digest is not None else set()
        return frozenset(ticket | ({"wampcra"} if self.key is not None else set()))


@dataclass(frozen=True, slots=True)
class Authenticated:
    """What a session is told that it is."""

    authid: str
    authrole: str
    authmethod: AuthMethod
    authprovider: str = PROVIDER
    principal: bytes | None = None


class PendingProof:
    """A challenge that was sent to one session, and that takes one answer."""

    def __init__(self, method: AuthMethod, extra: dict[str, Any], users: Sequence[WampUser], *, is_decoy: bool) -> None:
        self.method = method
        self.extra = extra
        self._users = users
        self._is_decoy = is_decoy
        self._is_used = False

    def accept(self, proof: str) -> Authenticated | None:
        """Return who the client is, ``None`` where the proof does not fit or is not the first one."""
        if self._is_used:
            return None
        self._is_used = True
        fitting = [user for user in self._users if self._fits(user, proof)]  # all are compared, whichever fits
        if not fitting or self._is_decoy:
            return None
        user = fitting[0]
        return Authenticated(user.authid, user.authrole, self.method, principal=user.principal)

    def _fits(self, user: WampUser, proof: str) -> bool:
        if self.method == "ticket":
            return hmac.compare_digest(_digest(proof), user.ticket_digest or b"")
        expected = sign(self.extra["challenge"], user.key or b"")
        return hmac.compare_digest(_digest(expected), _digest(proof))


class Authenticator:
    """The users of a realm, and how they prove who they are."""

    def __init__(
        self,
        users: Iterable[WampUser] = (),
        *,
        anonymous_role: str | None = None,
        preference: Sequence[AuthMethod] = AUTH_METHODS,
        clock: Clock,
    ) -> None:
        self._users: dict[str, list[WampUser]] = {}
        for user in users:
            self._users.setdefault(user.authid, []).append(user)
        self._all = [user for same in self._users.values() for user in same]
        self._anonymous_role = anonymous_role
        self._preference = preference
        self._clock = clock
        self._decoy_key = secrets.token_bytes(32)

    def begin(self, offered: Sequence[object], authid: str | None, session: int) -> Authenticated | PendingProof | None:
        """Return who the client is or how it has to prove it; ``None`` where no method fits.

        ``offered`` are the client's methods. Those with a proof need an ``authid``; an anonymous client gets a random
        one, so that nobody poses as somebody else.
        """
        users, is_decoy = self._users_of(authid)
        usable = {method for user in users for method in user.methods}
        for method in self._preference:
            if method not in offered:
                continue
            if method == ANONYMOUS and self._anonymous_role is not None:
                return Authenticated(f"anonymous-{secrets.token_hex(8)}", self._anonymous_role, ANONYMOUS)
            if method in usable:
                able = [user for user in users if method in user.methods]
                return PendingProof(method, self._extra(method, able[0], session), able, is_decoy=is_decoy)
        return None

    def _users_of(self, authid: str | None) -> tuple[list[WampUser], bool]:
        if not authid or not self._all:
            return [], True
        if authid in self._users:
            return self._users[authid], False
        return [self._decoy(authid)], True

    def _decoy(self, authid: str) -> WampUser:
        """Return a user like one of ours, the same at each attempt."""
        noise = hmac.digest(self._decoy_key, authid.encode(), "sha256")
        model = self._all[int.from_bytes(noise[:8], "big") % len(self._all)]
        salting = model.salting
        if salting is not None:
            salting = Salting(_like(salting.salt, noise), salting.iterations, salting.keylen)
        ticket, key = model.ticket_digest and secrets.token_bytes(32), model.key and secrets.token_bytes(32)
        return WampUser(authid, model.authrole, ticket, key, salting)

    def _extra(self, method: AuthMethod, user: WampUser, session: int) -> dict[str, Any]:
        if method == "ticket":
            return {}
        challenge = {
            "authid": user.authid,
            "authrole": user.authrole,
            "authmethod": method,
            "authprovider": PROVIDER,
            "session": session,
            "nonce": secrets.token_hex(NONCE_BYTES),
            "timestamp": rfc3339.format_time(self._clock.now_ns(), digits=3),
        }
        return {"challenge": json.dumps(challenge), **(user.salting.extra() if user.salting else {})}


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _like(salt: str, noise: bytes) -> str:
    """Return noise that has the length of ``salt`` and its kind of characters."""
    alphabet = "".join(sorted(set(salt))) if len(set(salt)) > 1 else salt + "0"
    return "".join(alphabet[byte % len(alphabet)] for byte in shake_256(noise).digest(len(salt)))
