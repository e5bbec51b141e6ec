"""Secrets of a subscription: never shown, and kept where a client sends back what it was shown.

Secret are a sink's user information, ``sinkcredential.secret`` and ``.accesstoken``, and in the maps
of ``protocolsettings`` each value whose name speaks of a credential. A mask stands for each of them in every answer.
INVARIANT: a mask is only turned back into a secret for the host that the secret was given for.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.delivery.sink_address import MASK

CREDENTIAL_SECRETS = ("secret", "accesstoken")
SETTINGS_WITH_SECRETS = ("headers", "userproperties", "linkproperties")

_SECRET_NAME = re.compile(r"auth|cookie|token|secret|passw|api-?key|credential|signature", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether a header or property of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def masked(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a realized object in which every secret is a mask."""
    found = deepcopy(dict(members))
    found["sink"] = masked_sink(found["sink"])
    for holder, name, _ in _secrets(found):
        holder[name] = MASK
    return found


def masked_sink(sink: str) -> str:
    """Return a sink as it was given, with a mask in place of its user information."""
    parts = _split(sink)
    return sink if parts is None or "@" not in parts.netloc else _with_user(parts, MASK)


def unmasked(given: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a client gave, with the secrets of ``old`` in place of masks.

    Raises ``InvalidMember`` for a mask where there is no such secret, or where the sink leads to another host.
    """
    found = deepcopy(dict(given))
    sink = found.get("sink")
    same_host = old is not None and isinstance(sink, str) and _place(sink) == _place(old["sink"])
    if old is not None and isinstance(sink, str) and _user_of(sink) == MASK:
        parts, user = _split(sink), _user_of(old["sink"])
        if parts is None or not same_host or user is None:
            raise _needs_secret("sink", same_host=same_host)
        found["sink"] = _with_user(parts, user)
    elif _user_of(sink) == MASK:
        raise _needs_secret("sink", same_host=True)
    known = {path: holder[name] for holder, name, path in _secrets(old or {})}
    for holder, name, path in _secrets(found):
        if holder[name] == MASK:
            if path not in known or not same_host:
                raise _needs_secret(path, same_host=same_host or path not in known)
            holder[name] = known[path]
    return found


def _needs_secret(path: str, *, same_host: bool) -> InvalidMember:
    expected = "the secret itself" if same_host else "the secret itself, because the sink leads to another host"
    return InvalidMember(path, "the mask of a secret", expected)


def _secrets(members: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield each place of a secret: the object that holds it, its name there, and its path."""
    credential = members.get("sinkcredential")
    if isinstance(credential, dict):
        for name in CREDENTIAL_SECRETS:
            if name in credential:
                yield credential, name, f"sinkcredential.{name}"
    settings = members.get("protocolsettings")
    if isinstance(settings, dict):
        for group in SETTINGS_WITH_SECRETS:
            held = settings.get(group)
            if isinstance(held, dict):
                for name in held:
                    if is_secret_name(name):
                        yield held, name, f"protocolsettings.{group}.{name}"


def _split(sink: str) -> SplitResult | None:
    try:
        return urlsplit(sink)
    except ValueError:
        return None


def _user_of(sink: object) -> str | None:
    """Return the user information of a sink, ``None`` where it has none."""
    parts = _split(sink) if isinstance(sink, str) else None
    return None if parts is None or "@" not in parts.netloc else parts.netloc.rpartition("@")[0]


def _with_user(parts: SplitResult, user: str) -> str:
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))


def _place(sink: str) -> tuple[str, str] | None:
    """Return the scheme and the hosts with their ports."""
    parts = _split(sink)
    return None if parts is None else (parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower())
