"""What a subscriber asks for: configuration, filter, skip, and whether the subscription is stopped.

Law: filter, skip and stop are said by fields or by keys of the configuration. Where a field and a key are given at
once and differ, the item is refused; at a registration either of them stops. An update that says one of them by its
field takes a key that says otherwise out of the configuration. An empty filter is none.
Source: ICRC-72, "SubscriptionRegistration" and "SubscriptionUpdate".
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from relaycast_gateway.icrc.names import FILTER, SKIP, STOPPED
from relaycast_gateway.icrc.orchestrator.config_keys import SUBSCRIPTION_KEYS, check_size, checked_config, merged
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.skip import Skip, skip_of
from relaycast_gateway.icrc16 import Icrc16, array, nat
from relaycast_gateway.record import Headers

AskedSkip = tuple[int, int | None]
"""A skip as it is asked for: divisor, and offset where one is given."""


class SubscriptionTerms(NamedTuple):
    """What is asked for, however it was spelled."""

    config: Headers
    filter: str | None
    skip: AskedSkip | None
    is_stopped: bool

    def agree_with(self, other: "SubscriptionTerms") -> bool:
        """Return whether both ask for the same, in whatever order of keys."""
        return self[1:] == other[1:] and dict(self.config) == dict(other.config)


def terms_of(it: IcrcSubscription) -> SubscriptionTerms:
    """Return what a subscription asks for now."""
    return SubscriptionTerms(it.config, it.filter, it.asked_skip, it.is_stopped)


def registered_terms(item: Mapping[str, Any], settings: OrchestratorSettings) -> SubscriptionTerms:
    """Return what a registration asks for; ``ValueError`` names what is wrong."""
    config = checked_config(item.get("config"), SUBSCRIPTION_KEYS, settings)
    keys = dict(config)
    field = _field_skip(item.get("skip"))
    if field is not None and SKIP in keys:
        _check_skips_agree(field, key_skip(keys[SKIP]))
    key = content_of(keys.get(FILTER))
    if item.get("filter") is not None and key is not None:
        _check_agree(FILTER, item["filter"], key)
    return SubscriptionTerms(
        config,
        (key if item.get("filter") is None else item["filter"]) or None,
        key_skip(keys.get(SKIP)) if field is None else field,
        bool(item.get("stopped")) or bool(content_of(keys.get(STOPPED))),
    )


def changed_terms(
    known: SubscriptionTerms, item: Mapping[str, Any], settings: OrchestratorSettings
) -> SubscriptionTerms:
    """Return what a subscription asks for after an update; ``ValueError`` names what is wrong."""
    change = _change(item, settings)
    said, config = dict(change), dict(merged(known.config, change))
    _, filter_, skip, is_stopped = known
    if FILTER in said:
        filter_ = content_of(said[FILTER]) or None
    if SKIP in said:
        skip = key_skip(said[SKIP])
    if STOPPED in said:
        is_stopped = bool(content_of(said[STOPPED]))
    if item.get("newFilter") is not None:
        if FILTER in said:
            _check_agree(FILTER, item["newFilter"], filter_ or "")
        filter_ = item["newFilter"] or None
        if filter_ != (content_of(config.get(FILTER)) or None):
            config.pop(FILTER, None)
    if item.get("newSkip") is not None:
        field = _field_skip(item["newSkip"].value)
        if SKIP in said:
            _check_skips_agree(field, skip)
        skip = field
        if skip != key_skip(config.get(SKIP)):
            config.pop(SKIP, None)
    if item.get("newStopped") is not None:
        if STOPPED in said:
            _check_agree(STOPPED, item["newStopped"], is_stopped)
        is_stopped = item["newStopped"]
        if is_stopped != bool(content_of(config.get(STOPPED))):
            config.pop(STOPPED, None)
    kept = tuple(config.items())
    check_size(kept, settings)
    return SubscriptionTerms(kept, filter_, skip, is_stopped)


def content_of(value: Icrc16 | None) -> Any:
    """Return what a value of a known form holds, ``None`` for none and for ``Option(null)``."""
    return None if value is None else value.content


def key_skip(value: Icrc16 | None) -> AskedSkip | None:
    """Return the skip of a key's ``Nat``, ``Array[Nat]`` or ``Array[Nat, Nat]``."""
    if value is None or value.content is None:
        return None
    skip = skip_of(value)
    return skip.mod, skip.offset if isinstance(value.content, tuple) and len(value.content) == 2 else None


def skip_key(asked: AskedSkip) -> Icrc16:
    """Return the value of a key that asks for a skip."""
    mod, offset = asked
    return array(nat(mod)) if offset is None else array(nat(mod), nat(offset))


def skip_asked(asked: AskedSkip | None) -> Skip | None:
    """Return the skip; ``ValueError`` for the divisor 0."""
    return None if asked is None else Skip(asked[0], asked[1] or 0)


def _change(item: Mapping[str, Any], settings: OrchestratorSettings) -> Headers:
    """Return the change of the configuration, by either spelling."""
    spellings = [it for it in (item.get("newConfig"), item.get("config")) if it is not None]
    if len(spellings) > 1 and spellings[0] != spellings[1]:
        raise ValueError("newConfig and config: expected one of them, got two that differ")
    return checked_config(spellings[0] if spellings else None, SUBSCRIPTION_KEYS, settings, is_change=True)


def _check_agree(name: str, field: object, key: object) -> None:
    if field != key:
        raise ValueError(f"{name}: expected what the field says, {str(field)[:80]!r}, got {str(key)[:80]!r}")


def _check_skips_agree(field: AskedSkip | None, key: AskedSkip | None) -> None:
    one, other = skip_asked(field), skip_asked(key)
    if one is not other and (one is None or other is None or not one.agrees_with(other)):
        raise ValueError(f"{SKIP}: expected the skip that the field says, got another one")


def _field_skip(field: Mapping[int, int | None] | None) -> AskedSkip | None:
    """Return the skip of a field ``record {nat; opt nat}``; ``ValueError`` for the divisor 0."""
    if field is None:
        return None
    asked = field[0] or 0, field.get(1)
    skip_asked(asked)
    return asked
