"""The options of PUBLISH: who may receive the event, what is told of its publisher, whether it is acknowledged.

Law: a session receives an event if it is on none of the lists ``exclude``, ``exclude_authid`` and ``exclude_authrole``,
and on each given list of ``eligible``, ``eligible_authid`` and ``eligible_authrole``. If a given list is empty, no
session receives it. A publication with a list of sessions, empty or not, is never stored: sessions end, and a later one
must not see what an earlier one was kept from. Options without a meaning here are ignored. Source: WAMP, "Subscriber
Black- and Whitelisting", "Event History".
"""

from collections.abc import Callable, Mapping
from typing import Any

from relaycast_gateway.record import EVERYBODY, Visibility
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, WampError
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import MOST_ID, PAYLOAD_OPTIONS, Details

Reception = Callable[[Identity], bool]
"""Tells whether a session may receive an event."""

EphemeralOptions = Mapping[str, Callable[[Any], Reception]]
"""Further options that choose receivers by what ends with their session, by name.

Each is called with the option's value, and raises ``ValueError`` where that is none.
"""

_TEXTS = (*PAYLOAD_OPTIONS, "transaction_hash")
_BOOLEANS = ("acknowledge", "exclude_me", "disclose_me", "retain")


class PublicationOptions:
    """The options of one publication, checked."""

    __slots__ = (
        "acknowledge",
        "disclose_me",
        "eligible",
        "exclude",
        "exclude_me",
        "is_ephemeral",
        "is_for_everybody",
        "passed_on",
        "receptions",
        "visibility",
    )

    def __init__(
        self,
        *,
        acknowledge: bool = False,
        exclude_me: bool = True,
        disclose_me: bool = False,
        visibility: Visibility = EVERYBODY,
        exclude: frozenset[int] | None = None,
        eligible: frozenset[int] | None = None,
        receptions: tuple[Reception, ...] = (),
        passed_on: Details | None = None,
    ) -> None:
        self.acknowledge = acknowledge
        self.exclude_me = exclude_me
        self.disclose_me = disclose_me
        self.visibility = visibility
        self.exclude = exclude
        self.eligible = eligible
        self.receptions = receptions
        self.passed_on = passed_on or {}
        """What receivers need to read a payload that is passed through."""

        self.is_ephemeral = exclude is not None or eligible is not None or bool(receptions)
        """Whether receivers are chosen by what ends with their session."""

        self.is_for_everybody = visibility is EVERYBODY and not self.is_ephemeral

    def allows(self, identity: Identity) -> bool:
        """Return whether the lists let a session receive the event."""
        return (
            (self.exclude is None or identity.session not in self.exclude)
            and (self.eligible is None or identity.session in self.eligible)
            and self.visibility.allows(identity.authid, identity.authrole)
            and all(reception(identity) for reception in self.receptions)
        )


PLAIN = PublicationOptions()
_ACKNOWLEDGED = PublicationOptions(acknowledge=True)
_ONLY_ACKNOWLEDGED = {"acknowledge": True}


def options_of(given: Details, ephemeral: EphemeralOptions) -> PublicationOptions:
    """Return the options of a PUBLISH; ``WampError`` names the one whose value is of the wrong kind."""
    if not given:
        return PLAIN
    if given == _ONLY_ACKNOWLEDGED and given["acknowledge"] is True:
        return _ACKNOWLEDGED
    for name in _BOOLEANS:
        expect(given, name, bool, "true or false")
    for name in _TEXTS:
        expect(given, name, str, "a text")
    eligible_authid, eligible_authrole = _names(given, "eligible_authid"), _names(given, "eligible_authrole")
    visibility = Visibility(
        eligible_authid,
        eligible_authrole,
        _names(given, "exclude_authid") or (),
        _names(given, "exclude_authrole") or (),
    )
    return PublicationOptions(
        acknowledge=given.get("acknowledge", False),
        exclude_me=given.get("exclude_me", True),
        disclose_me=given.get("disclose_me", False),
        visibility=EVERYBODY if visibility == EVERYBODY else visibility,
        exclude=_sessions(given, "exclude"),
        eligible=_sessions(given, "eligible"),
        receptions=tuple(_reception(name, read, given[name]) for name, read in ephemeral.items() if name in given),
        passed_on={name: given[name] for name in _TEXTS if name in given},
    )


def expect(given: Details, name: str, kind: type, says: str) -> None:
    """Raise ``WampError`` where the option is there and of another kind."""
    if name in given and not isinstance(given[name], kind):
        raise _refusal(name, given[name], says)


def _names(given: Details, name: str) -> tuple[str, ...] | None:
    if name not in given:
        return None
    listed = given[name]
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise _refusal(name, listed, "a list of texts")
    return tuple(dict.fromkeys(listed))


def _sessions(given: Details, name: str) -> frozenset[int] | None:
    if name not in given:
        return None
    listed = given[name]
    if not isinstance(listed, list) or not all(type(each) is int and 0 < each <= MOST_ID for each in listed):
        raise _refusal(name, listed, "a list of session ids")
    return frozenset(listed)


def _reception(name: str, read: Callable[[Any], Reception], given: Any) -> Reception:
    try:
        return read(given)
    except ValueError as error:
        raise WampError(INVALID_ARGUMENT, f"{name}: {error}") from None


def _refusal(name: str, got: Any, expected: str) -> WampError:
    return WampError(INVALID_ARGUMENT, f"{name}: expected {expected}, got {str(got)[:100]}")
