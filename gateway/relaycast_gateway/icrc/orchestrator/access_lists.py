"""Who may publish and who may receive: lists of principals, and lists that other canisters keep.

Law: whoever is on a list of disallowed principals is refused, whatever other lists say. Where a list of allowed ones
is given, only those on it pass: an empty one lets nobody pass. Lists of ICRC-75 are asked at each use.
Source: ICRC-72, "Publications Configs"; ICRC-75.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from relaycast_gateway.icrc.names import PUBLICATION
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc16 import Icrc16, Tag
from relaycast_gateway.principal import MOST_BYTES

_TABLE = "icrc75"

ListName = tuple[bytes, str]
"""The canister that keeps a list, and the list's namespace there."""


class Icrc75Lists:
    """Lists of principals, each of a canister and under a namespace, as ICRC-75 has them; they are kept in a store."""

    def __init__(self, store: IcrcStore) -> None:
        self._store = store
        self._members = {key for key, _ in store.items(_TABLE)}

    def add(self, canister: bytes, namespace: str, principal: bytes) -> None:
        """Put a principal on a list, from now on and durably."""
        key = _member(canister, namespace, principal)
        self._store.put(_TABLE, key, b"")
        self._flush()
        self._members.add(key)

    def remove(self, canister: bytes, namespace: str, principal: bytes) -> None:
        """Take a principal off a list; one that is not on it is no error."""
        key = _member(canister, namespace, principal)
        self._store.delete(_TABLE, key)
        self._flush()
        self._members.discard(key)

    def has(self, canister: bytes, namespace: str, principal: bytes) -> bool:
        """Return whether a principal is on a list; a list that nobody wrote to has none."""
        return _member(canister, namespace, principal) in self._members

    def _flush(self) -> None:
        try:
            self._store.flush()
        except sqlite3.Error:
            self._store.take_back(_TABLE)
            raise


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who passes, by one publication's configuration; ``allowed`` is ``None`` where it lists no allowed ones."""

    allowed: frozenset[bytes] | None = None
    disallowed: frozenset[bytes] = frozenset()
    allowed_lists: tuple[ListName, ...] = ()
    disallowed_lists: tuple[ListName, ...] = ()

    def permit(self, principal: bytes, lists: Icrc75Lists, *, by_default: bool) -> bool:
        """Return whether a principal passes; ``by_default`` where no list of allowed ones is given."""
        if principal in self.disallowed or any(lists.has(*it, principal) for it in self.disallowed_lists):
            return False
        if self.allowed is None:
            return by_default
        return principal in self.allowed or any(lists.has(*it, principal) for it in self.allowed_lists)


NO_RULES = AccessRules()


def access_rules(config: Mapping[str, Icrc16], who: Literal["publishers", "subscribers"]) -> AccessRules:
    """Return the rules of a configuration; ``ValueError`` for a list of another form."""
    keys = [f"{PUBLICATION}{who}:{kind}" for kind in _KINDS]
    allowed, disallowed, allowed_lists, disallowed_lists = map(config.get, keys)
    if allowed is disallowed is allowed_lists is disallowed_lists is None:
        return NO_RULES
    is_open = allowed is None and allowed_lists is None
    return AccessRules(
        None if is_open else frozenset(() if allowed is None else principals(allowed)),
        frozenset(() if disallowed is None else principals(disallowed)),
        () if allowed_lists is None else list_names(allowed_lists),
        () if disallowed_lists is None else list_names(disallowed_lists),
    )


_KINDS = ("allowed:list", "disallowed:list", "allowed:icrc75", "disallowed:icrc75")


def principals(value: Icrc16) -> tuple[bytes, ...]:
    """Return the principals of an ``Array`` of ``Blob``; ``ValueError`` names what is none."""
    if value.tag is not Tag.ARRAY:
        raise ValueError(f"expected an Array of Blob, got {value.tag}")
    for each in value.content:
        _check_principal(each)
    return tuple(each.content for each in value.content)


def list_names(value: Icrc16) -> tuple[ListName, ...]:
    """Return the lists that ``Array[Blob, Text]`` or an ``Array`` of such names; ``ValueError`` for another form."""
    if value.tag is not Tag.ARRAY:
        raise ValueError(f"expected Array[Blob, Text], got {value.tag}")
    pairs = value.content if value.content and value.content[0].tag is Tag.ARRAY else (value,)
    return tuple(_list_name(each) for each in pairs)


def _list_name(value: Icrc16) -> ListName:
    if value.tag is not Tag.ARRAY or [each.tag for each in value.content[:3]] != [Tag.BLOB, Tag.TEXT]:
        got = str(value.tag) if value.tag is not Tag.ARRAY else f"Array of {len(value.content)}"
        raise ValueError(f"expected Array[Blob, Text], a canister and the namespace of its list, got {got}")
    canister, namespace = value.content
    _check_principal(canister)
    return canister.content, namespace.content


def _check_principal(value: Icrc16) -> None:
    if value.tag is not Tag.BLOB:
        raise ValueError(f"expected a principal as Blob, got {value.tag}")
    if len(value.content) > MOST_BYTES:
        raise ValueError(f"expected a principal as Blob of at most {MOST_BYTES} bytes, got {len(value.content)}")


def _member(canister: bytes, namespace: str, principal: bytes) -> bytes:
    """Return the key of a member: no two have the same."""
    return bytes([len(canister)]) + canister + bytes([len(principal)]) + principal + namespace.encode()
