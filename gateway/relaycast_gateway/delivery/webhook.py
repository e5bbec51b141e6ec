"""The handshake in which a receiver allows deliveries, and the rate that it sets.

Enabled by the setting ``requestorigin``, the DNS name to deliver as; ``requestrate`` asks for that many requests a
minute. Source: CloudEvents 1.0.2, "HTTP 1.1 Web Hooks for Event Delivery", section 4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from relaycast_gateway.clock import SECOND, Clock
from relaycast_gateway.delivery.sender import Retryable

MINUTE = 60.0

_WAIT_FOR_GRANT = 0.05
"""Seconds between looks at whether the first message, which asks, has come through."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """What is asked of the receiver."""

    origin: str
    rate: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        asked = {"WebHook-Request-Origin": self.origin}
        return asked if self.rate is None else asked | {"WebHook-Request-Rate": str(self.rate)}

    def granted(self, status: int, headers: Mapping[str, str]) -> "WebhookGrant | Retryable":
        """Read the answer: a grant, or why there is none."""
        if not 200 <= status < 300:
            return Retryable(f"the receiver did not take the validation request: HTTP {status}")
        origins = [part.strip().lower() for part in headers.get("WebHook-Allowed-Origin", "").split(",")]
        if "*" not in origins and self.origin.lower() not in origins:
            return Retryable(f"the receiver did not allow deliveries of {self.origin}")
        allowed = headers.get("WebHook-Allowed-Rate", "").strip()
        if allowed == "*":
            return WebhookGrant(None)
        return WebhookGrant(int(allowed) if re.fullmatch(r"0*[1-9][0-9]{0,8}", allowed) else self.rate)


@dataclass(frozen=True, slots=True)
class WebhookGrant:
    """Requests that the receiver allows in a minute; ``None`` is no limit."""

    rate: int | None


class WebhookPace:
    """Spreads messages evenly: one each 60 / rate seconds. Before there is a grant, one message at a time asks."""

    def __init__(self, clock: Clock, *, needs_grant: bool) -> None:
        self._clock = clock
        self._gap = 0.0
        self._last_ns: int | None = None
        self._needs_grant = needs_grant
        self._is_asking = False

    def grant(self, grant: WebhookGrant) -> None:
        self._needs_grant = False
        self._gap = 0.0 if grant.rate is None else MINUTE / grant.rate

    def asked(self) -> None:
        """End the request for a grant. If none was given, the next message asks again."""
        self._is_asking = False

    def take_turn(self) -> float:
        """Take the turn and return 0, or return the seconds to wait; a clock that was set never asks for more."""
        if self._needs_grant:
            if self._is_asking:
                return _WAIT_FOR_GRANT
            self._is_asking = True
        elif not self._gap:
            return 0.0
        now_ns = self._clock.now_ns()
        if self._last_ns is not None and self._gap:
            passed = (now_ns - self._last_ns) / SECOND
            if passed < 0:  # set back: count anew
                self._last_ns, passed = now_ns, 0.0
            if passed < self._gap:
                return self._gap - passed
        self._last_ns = now_ns
        return 0.0
