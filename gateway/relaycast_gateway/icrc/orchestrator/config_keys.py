"""Keys of configurations: what each holds, and how configurations are checked, merged and stored.

Law: a configuration names no key twice. A key that means something here holds a value of its form; any other key is
kept and returned as it came, or refused where the orchestrator is strict.
Source: ICRC-72, "Publications Configs" and "Subscription Configs"; ICRC-77, "Publisher Capabilities Metadata".
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from relaycast_gateway.icrc.names import (
    CAPABLE,
    FILTER,
    FILTER_LANGUAGE,
    ICRC3_ONLY,
    MOST_REPLAYED,
    PRICING,
    PRIORITY,
    PUBLICATION,
    REPLAY,
    REPLAY_RATE,
    SKIP,
    STOPPED,
    SUBSCRIBER_URL,
    TRUSTED,
    UNORDERED,
)
from relaycast_gateway.icrc.orchestrator.access_lists import list_names, principals
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.skip import skip_of
from relaycast_gateway.icrc.variants import headers_of
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag
from relaycast_gateway.log.record_codec import encode_headers
from relaycast_gateway.record import Headers

LONGEST_KEY = 256
LONGEST_URL = 2_048
HIGHEST_PRIORITY = (1 << 63) - 1


class ConfigKey(NamedTuple):
    """What a key holds and means; ``read`` raises ``ValueError`` for a value of another form."""

    form: str
    meaning: str
    read: Callable[[Icrc16], object]


def _of(tag: Tag) -> Callable[[Icrc16], object]:
    def read(value: Icrc16) -> object:
        if value.tag is not tag:
            raise ValueError(f"expected {tag}, got {value.tag}")
        return value.content

    return read


def _priority(value: Icrc16) -> object:
    if value.tag is not Tag.NAT or value.content > HIGHEST_PRIORITY:
        got = value.content if value.tag is Tag.NAT and value.content < 1 << 100 else value.tag
        raise ValueError(f"expected a Nat of at most {HIGHEST_PRIORITY}, got {got}")
    return value.content


def subscriber_url(value: Icrc16) -> str:
    """Return where a subscriber is served; ``ValueError`` for what is no address of http or https."""
    if value.tag is not Tag.TEXT:
        raise ValueError(f"expected Text, got {value.tag}")
    text: str = value.content
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if not is_one or len(text) > LONGEST_URL or not text.isprintable() or " " in text:
        raise ValueError(f"expected a URL of http or https, got {text[:80]!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("expected a URL without user, password, query and fragment")
    return text.rstrip("/")


_LIST = ("Array of Blob", "principals", principals)
_ICRC75 = ("Array[Blob, Text]", "a list of ICRC-75: the canister and the list's namespace there", list_names)

PUBLICATION_KEYS: Mapping[str, ConfigKey] = {
    **{
        f"{PUBLICATION}{who}:{verdict}:{kind}": ConfigKey(form, f"{what} that {verb} {may}", read)
        for who, verb in (("publishers", "publish"), ("subscribers", "receive"))
        for verdict, may in (("allowed", "may"), ("disallowed", "may not"))
        for kind, (form, what, read) in (("list", _LIST), ("icrc75", _ICRC75))
    },
    CAPABLE: ConfigKey("Bool", "this publisher serves replays", _of(Tag.BOOL)),
    REPLAY: ConfigKey("Bool", "the publication carries replays", _of(Tag.BOOL)),
    PRICING: ConfigKey("Class", "what replays cost: perEvent, currency", _of(Tag.CLASS)),
    MOST_REPLAYED: ConfigKey("Nat", "the most events of one replay", _of(Tag.NAT)),
    REPLAY_RATE: ConfigKey("Nat", "the most events replayed in a second", _of(Tag.NAT)),
    UNORDERED: ConfigKey("Bool", "the order of events does not matter", _of(Tag.BOOL)),
    ICRC3_ONLY: ConfigKey("Bool", "data is of the types of ICRC-3 alone", _of(Tag.BOOL)),
    FILTER_LANGUAGE: ConfigKey("Text", "the language of filters, CandyPath by default", _of(Tag.TEXT)),
    SUBSCRIBER_URL: ConfigKey("Text", "where a publisher outside of the process is told of replays", subscriber_url),
}
"""Keys of publications, by name."""

OF_THE_OWNER = frozenset({UNORDERED, ICRC3_ONLY, FILTER_LANGUAGE, *(it for it in PUBLICATION_KEYS if "allowed:" in it)})
"""Keys that hold for all publishers of a publication: its owner alone sets them."""

SUBSCRIPTION_KEYS: Mapping[str, ConfigKey] = {
    SKIP: ConfigKey("Nat, Array[Nat] or Array[Nat, Nat]", "select one event in every N, and which one", skip_of),
    FILTER: ConfigKey("Text", "the filter; an empty one is none", _of(Tag.TEXT)),
    STOPPED: ConfigKey("Bool", "true: nothing is sent until the subscription is started", _of(Tag.BOOL)),
    SUBSCRIBER_URL: ConfigKey("Text", "where a subscriber outside of the process is served", subscriber_url),
    TRUSTED: ConfigKey("Bool", "true: the answer of the subscriber confirms", _of(Tag.BOOL)),
    PRIORITY: ConfigKey("Nat", "subscriptions with a higher number are notified first, 0 by default", _priority),
}
"""Keys of subscriptions, by name."""


def checked_config(
    pairs: object, known: Mapping[str, ConfigKey], settings: OrchestratorSettings, *, is_change: bool = False
) -> Headers:
    """Return the configuration that an argument holds; ``ValueError`` names the key and what is wrong.

    In a change ``Option(null)`` removes a key, whatever its form is.
    """
    config = config_of(pairs)
    names = set()
    for name, value in config:
        if not 0 < len(name) <= LONGEST_KEY:
            raise ValueError(f"config: expected keys of 1 to {LONGEST_KEY} characters, got {len(name)}")
        if name in names:
            raise ValueError(f"{name}: expected once in a config, got it twice")
        names.add(name)
        key = known.get(name)
        if key is None:
            if settings.strict_config:
                raise ValueError(f"{name[:80]}: expected one of {', '.join(known)}")
        elif not (is_change and value == NOTHING):
            try:
                key.read(value)
                if name == SUBSCRIBER_URL:
                    settings.check_url(value.content)
            except ValueError as error:
                raise ValueError(f"{name}: {str(error).removeprefix('skip: ')}") from None
    check_size(config, settings)
    return config


def config_of(pairs: object) -> Headers:
    """Return the entries of a configuration, unchecked; ``ValueError`` where one nests too deep."""
    try:
        return headers_of(pairs)
    except ValueError as error:
        raise ValueError(f"config: {error}") from None


def check_size(config: Headers, settings: OrchestratorSettings) -> None:
    """Raise ``ValueError`` for a configuration that is too large to be kept."""
    stored_bytes = len(encode_headers(config))
    if stored_bytes > settings.most_config_bytes:
        raise ValueError(f"config: expected at most {settings.most_config_bytes} bytes, got {stored_bytes}")


def merged(config: Headers, change: Headers) -> Headers:
    """Return a configuration with changes: keys keep their places, new ones come last, ``Option(null)`` removes."""
    values = dict(config) | dict(change)
    return tuple((name, value) for name, value in values.items() if value != NOTHING)
