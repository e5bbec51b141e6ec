"""What a request for a replay asks for, checked.

Law: a request is refused with the first obstacle, and nothing was changed. Filter and skip are configuration entries
``filter`` and ``skip``, or those of ICRC-72; the range is closed at its start and open at its end.
Source: ICRC-77, "Filters and Skip", "Payment", ``ReplayRegistration``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.names import FILTER, SKIP, SUBSCRIBER_URL
from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.orchestrator.batch import improper_unless_well_formed
from relaycast_gateway.icrc.orchestrator.config_keys import config_of, subscriber_url
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguage
from relaycast_gateway.icrc.skip import Skip, skip_of
from relaycast_gateway.icrc16 import Icrc16, Tag
from relaycast_gateway.log.record_codec import encode_headers
from relaycast_gateway.matching.namespaces import is_namespace
from relaycast_gateway.record import Headers

LONGEST_MEMO = 32
"""Bytes."""

MOST_CONFIG_BYTES = 65_536
"""Bytes of the stored form of a configuration."""

SUBSCRIPTION = "relaycast:replay:subscription"
"""Ours: a Nat, the subscription that the replay is for."""

PAYMENT = "icrc77:payment"
"""Ours: a Nat, what the subscriber pays, in the currency of the publication's ``icrc77:pricing``."""

_FILTER_KEYS = ("filter", FILTER)
_SKIP_KEYS = ("skip", SKIP)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A request whose form is right."""

    namespace: str
    start: int
    end: int | None
    config: Headers
    memo: bytes
    filter: str | None
    selects: TreePredicate | None
    skip: Skip | None
    subscription: int | None
    payment: int
    url: str | None = None
    """The subscriber's URL, from the entry ``relaycast:subscriber:url``."""

    @classmethod
    def of(cls, given: Mapping[str, Any], language_of: Callable[[str], FilterLanguage]) -> "ReplayRequest":
        """Return what a ``ReplayRegistration`` asks for; ``ItemRefused`` with ``ImproperConfig`` names the fault.

        ``language_of`` tells the language of filters of a namespace.
        """
        with improper_unless_well_formed():
            return cls._read(given, language_of)

    @classmethod
    def _read(cls, given: Mapping[str, Any], language_of: Callable[[str], FilterLanguage]) -> "ReplayRequest":
        namespace, span, memo = given["namespace"], given["range"], given["memo"] or b""
        start, end = span[0], span[1]
        if not is_namespace(namespace):
            raise ValueError(f"namespace: got {namespace[:80]!r}, expected one namespace without wildcards")
        if end is not None and start > end:
            raise ValueError(f"range: got {shown(start)} to {shown(end)}, expected a start that is not behind the end")
        if len(memo) > LONGEST_MEMO:
            raise ValueError(f"memo: got {len(memo)} bytes, expected at most {LONGEST_MEMO}")
        config = config_of(given["config"])
        config_bytes = len(encode_headers(config))
        if config_bytes > MOST_CONFIG_BYTES:
            raise ValueError(f"config: got {config_bytes} bytes, expected at most {MOST_CONFIG_BYTES}")
        entries = {key: _inner(value) for key, value in config}
        url = entries.get(SUBSCRIBER_URL)
        filter_text = _filter(entries)
        return cls(
            namespace,
            start,
            end,
            config,
            memo,
            filter_text,
            None if filter_text is None else language_of(namespace)(filter_text),
            _skip(entries),
            _natural(entries, SUBSCRIPTION),
            _natural(entries, PAYMENT) or 0,
            None if url is None else _url(url),
        )


def _url(value: Icrc16) -> str:
    try:
        return subscriber_url(value)
    except ValueError as error:
        raise ValueError(f"{SUBSCRIBER_URL}: {error}") from None


def _inner(value: Icrc16) -> Icrc16 | None:
    """Return what an Option holds, and any other value as it is."""
    return value.content if value.tag is Tag.OPTION else value


def _entry(entries: Mapping[str, Icrc16 | None], keys: tuple[str, ...]) -> Icrc16 | None:
    found = {key: entries[key] for key in keys if entries.get(key) is not None}
    if len(set(found.values())) > 1:
        raise ValueError(f"{' and '.join(found)} differ: give one of them")
    return next(iter(found.values()), None)


def _filter(entries: Mapping[str, Icrc16 | None]) -> str | None:
    value = _entry(entries, _FILTER_KEYS)
    if value is None:
        return None
    if value.tag is not Tag.TEXT:
        raise ValueError(f"filter: expected Text, got {value.tag}")
    return str(value.content) or None


def _skip(entries: Mapping[str, Icrc16 | None]) -> Skip | None:
    value = _entry(entries, _SKIP_KEYS)
    return None if value is None else skip_of(value)


def _natural(entries: Mapping[str, Icrc16 | None], key: str) -> int | None:
    value = entries.get(key)
    if value is None:
        return None
    if value.tag is not Tag.NAT:
        raise ValueError(f"{key}: expected Nat, got {value.tag}")
    return int(value.content)
