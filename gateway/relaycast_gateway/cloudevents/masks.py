"""Secrets of a subscription: never shown, and kept where a client sends back what it was shown.

Secret are a sink's user information, each parameter of its query whose name speaks of a credential, and
``sinkcredential.secret`` and ``.accesstoken``. In the maps of ``protocolsettings``, each value of such a name is secret
too. A mask stands for each of them in every answer. INVARIANT: a mask is only turned back into a secret for the host
that the secret was given for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.delivery.secret_names import MASK, is_secret_name, masked_query, query_parts

CREDENTIAL_SECRETS = ("secret", "accesstoken")
SETTINGS_WITH_SECRETS = ("headers", "userproperties", "linkproperties")

_USER = ("", -1)
"""The place of a sink's user information among its secrets."""


def masked(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a realized object in which every secret is a mask."""
    found = deepcopy(dict(members))
    found["sink"] = masked_sink(found["sink"])
    for holder, name, _ in _secrets(found):
        holder[name] = MASK
    return found


def masked_sink(sink: str) -> str:
    """Return a sink as it was given, with masks in place of its user information and of the secrets in its query."""
    parts = _split(sink)
    if parts is None:
        return sink
    shown = parts._replace(query=masked_query(parts.query))
    if "@" in parts.netloc:
        shown = _with_user(shown, MASK)
    return sink if shown == parts else urlunsplit(shown)


def unmasked(given: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a client gave, with the secrets of ``old`` in place of masks.

    Raises ``InvalidMember`` for a mask where there is no such secret, or where the sink leads to another host.
    """
    found = deepcopy(dict(given))
    sink = found.get("sink")
    same_host = old is not None and isinstance(sink, str) and _place(sink) == _place(old["sink"])
    if isinstance(sink, str):
        found["sink"] = _unmasked_sink(sink, None if old is None else old["sink"], same_host=same_host)
    known = {path: holder[name] for holder, name, path in _secrets(old or {})}
    for holder, name, path in _secrets(found):
        if holder[name] == MASK:
            if path not in known or not same_host:
                raise _needs_secret(path, same_host=same_host or path not in known)
            holder[name] = known[path]
    return found


def _unmasked_sink(sink: str, old: str | None, *, same_host: bool) -> str:
    """Return a sink with the secrets of ``old`` in place of masks; a parameter's name may repeat."""
    parts = _split(sink)
    if parts is None:
        return sink
    known = {} if old is None else _sink_secrets(old)
    kept = _sink_secrets(sink)
    for place, given in kept.items():
        if given == MASK:
            if place not in known or not same_host:
                raise _needs_secret("sink", same_host=same_host or place not in known)
            kept[place] = known[place]
    numbers: Counter[str] = Counter()
    query = ""
    for text, name, secret in query_parts(parts.query):
        query += text if secret is None else text + kept[name, numbers[name]]
        numbers[name] += secret is not None
    found = parts._replace(query=query)
    if _USER in kept:
        found = _with_user(found, kept[_USER])
    return sink if found == parts else urlunsplit(found)


def _sink_secrets(sink: str) -> dict[tuple[str, int], str]:
    """Return the secrets of a sink: by the parameter's name and how often it stood before, and by ``_USER``."""
    parts = _split(sink)
    found: dict[tuple[str, int], str] = {}
    if parts is None:
        return found
    if "@" in parts.netloc:
        found[_USER] = parts.netloc.rpartition("@")[0]
    numbers: Counter[str] = Counter()
    for _, name, secret in query_parts(parts.query):
        if secret is not None:
            found[name, numbers[name]] = secret
            numbers[name] += 1
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


def _with_user(parts: SplitResult, user: str) -> SplitResult:
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}")


def _place(sink: str) -> tuple[str, str] | None:
    """Return the scheme and the hosts with their ports."""
    parts = _split(sink)
    return None if parts is None else (parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower())
