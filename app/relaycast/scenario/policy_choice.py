"""Policies by name: what ``[policies]`` in a scenario and ``--policy`` on a command line stand for.

Law: the first name of each kind is what a scenario gets that names none, and holds every invariant; the others are what
public drafts do, or might. A name that is not known raises ``BadInput`` with the nearest.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from relaycast.refusal import BadInput, nearest, shown
from relaycast_collator.latest_values import LatestValues
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import System
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy, CumulusSixths, Floor, Remaining
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.policies import (
    MAX_NODE_BYTES,
    Advanced,
    ChangedKeys,
    EveryRead,
    IgnoreDeletions,
    Policies,
    StructureNodes,
    SystemFirstShuffled,
    WhenPublisherDone,
)
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    Basic,
    ForgetUnchanged,
    NoCache,
    SystemFirstNumeric,
    ValuesOnly,
)
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, ParaId, Weight, WeightMeter


class PolicyTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name of each kind; ``budget`` may carry a number, as in ``floor:65536`` or ``remaining:400kB``."""

    order: str = "shuffled"
    metering: str = "every-read"
    root_commit: str = "when-done"
    callback: str = "changed-keys"
    cache: str = "structure"
    budget: str = "remaining"
    max_cached_node: Annotated[int, Meta(ge=1, le=MAX_NODE_BYTES)] = MAX_NODE_BYTES
    """Bytes of the largest node that is kept; upstream's 512 leave out every full branch."""

    deletion: str | UnsetType = UNSET
    """Whether a subscriber is told that a key was deleted or has expired; "silent" where it is left out."""

    advancement: str | UnsetType = UNSET
    """How far a block must advance horizontal messages; "advanced" by default."""


class _Choice(Struct, frozen=True):
    """A policy under a name, with the range of the ``number`` that may follow it and its default."""

    make: Callable[..., Any]
    number: range | None = None
    default: int | None = None
    takes_bytes: bool = False


KINDS: Mapping[str, Mapping[str, _Choice]] = {
    "order": {"shuffled": _Choice(SystemFirstShuffled), "numeric": _Choice(SystemFirstNumeric)},
    "metering": {
        "every-read": _Choice(EveryRead),
        "values-only": _Choice(ValuesOnly),
        "carried": _Choice(MeterOwnState),
    },
    "root_commit": {
        "when-done": _Choice(WhenPublisherDone),
        "after-first-key": _Choice(AfterFirstKey),
        "forget-unchanged": _Choice(ForgetUnchanged),
    },
    "callback": {"changed-keys": _Choice(ChangedKeys), "all-keys": _Choice(AllKeysOnChange)},
    "cache": {"structure": _Choice(StructureNodes), "none": _Choice(NoCache)},
    "budget": {
        "remaining": _Choice(Remaining, range(1, 101), takes_bytes=True),
        "cumulus": _Choice(CumulusSixths),
        "floor": _Choice(Floor, range(1 << 30), 1 << 20, takes_bytes=True),
    },
    "deletion": {"silent": _Choice(IgnoreDeletions), "told": _Choice(NotifyDeletions)},
    "advancement": {"advanced": _Choice(Advanced), "basic": _Choice(Basic)},
}
"""Every policy, by kind and name; numbers are percent of the largest PoV, and bytes of a floor.

With a unit (``remaining:64KiB``) either is in bytes.
"""

BYTE_UNITS = {"B": 1, "kB": 1_000, "KiB": 1 << 10, "MB": 1_000_000, "MiB": 1 << 20}
MAX_BUDGET_BYTES = 1 << 30

_BYTES = re.compile(rf"([0-9]{{1,10}})({'|'.join(BYTE_UNITS)})")


class ByteCount(int):
    """A number that was given in bytes, where it could be a percentage."""


def names_of(table: PolicyTable) -> dict[str, str | int]:
    """Return the name of every kind, the first one where the table leaves a kind out."""
    given: dict[str, Any] = asdict(table)
    return {kind: next(iter(KINDS[kind])) if name is UNSET else name for kind, name in given.items()}


def check_policies(table: PolicyTable, place: str) -> None:
    """Raise ``BadInput`` unless every name is known."""
    for kind, name in names_of(table).items():
        if kind in KINDS:
            _chosen(kind, str(name), f"{place}.{kind}")


def policies_of(table: PolicyTable) -> Policies:
    """Return what a subscriber is given; the budget goes its own way."""
    names = names_of(table)
    made = {kind: _made(kind, str(name)) for kind, name in names.items() if kind in KINDS and kind != "budget"}
    if isinstance(made["cache"], StructureNodes):
        made["cache"] = StructureNodes(table.max_cached_node)
    return Policies(**made)


def budget_of(table: PolicyTable, *, pov_percent: int, pov_bytes: int | None = None) -> BudgetPolicy:
    """Return the budget.

    ``pov_percent`` of the largest PoV, or ``pov_bytes``, are shared out unless ``remaining`` says otherwise.
    """
    choice, number = _chosen("budget", table.budget, "budget")
    whole = Remaining(pov_percent, pov_bytes)
    if choice.make is Remaining:
        if isinstance(number, ByteCount):
            return Remaining(limit_bytes=int(number))
        return whole if number is None else Remaining(number)
    if choice.make is Floor:
        assert number is not None
        return Floor(int(number), whole)
    return CumulusSixths()


def walked_plainly() -> list[str]:
    """Return the policies, each as ``kind=name``, under which no publisher is walked in arrays, whatever the engine."""
    named = ((kind, name) for kind in KINDS if kind != "budget" for name in KINDS[kind])
    return [f"{kind}={name}" for kind, name in named if not _fits_arrays(replace(PolicyTable(), **{kind: name}))]


def _fits_arrays(table: PolicyTable) -> bool:
    handler = LatestValues()
    handler.subscribe(ParaId(LOWEST_PUBLIC_ID), [SubscribedKey(bytes(32))])
    subscriber = Subscriber(System(State(window=1)), handler, policies=policies_of(table))
    reads = subscriber.paid_reads(TrackedProof((), bytes(32)), WeightMeter(Weight.MAX))
    return all(map(reads.fits_arrays, subscriber.plan().views.values()))


def with_overrides(table: PolicyTable, overrides: Iterable[str], *, place: str = "--policy") -> PolicyTable:
    """Return ``table`` with policies given as ``kind=name``; raises ``BadInput``."""
    given: dict[str, str | int] = {}
    kinds = [*KINDS, "max_cached_node"]
    for text in overrides:
        kind, equals, name = text.partition("=")
        if not equals:
            raise BadInput(place, shown(text), "KIND=NAME, such as cache=none")
        if kind not in kinds:
            raise BadInput(place, shown(kind), "a kind of policy before the =", nearest(kind, kinds))
        if kind in given:
            raise BadInput(place, f"{kind} again", "every kind of policy once")
        if kind in KINDS:
            _chosen(kind, name, f"{place} {kind}")
            given[kind] = name
        else:
            given[kind] = _node_bytes(name, f"{place} {kind}")
    return replace(table, **given)


def described(table: PolicyTable) -> str:
    """Return the policies that are not what a scenario gets by default."""
    default = names_of(PolicyTable())
    others = [f"{kind}={name}" for kind, name in names_of(table).items() if name != default[kind]]
    return ", ".join(others) or "default policies"


def _with_number(name: str, choice: _Choice) -> str:
    assert choice.number is not None
    text = f"{name}:N with N from {choice.number[0]} to {choice.number[-1]}"
    return f"{text}, or bytes such as {name}:64KiB" if choice.takes_bytes else text


def _node_bytes(text: str, place: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_NODE_BYTES):
        raise BadInput(place, shown(text), f"a number of bytes from 1 to {MAX_NODE_BYTES}")
    return int(text)


def _made(kind: str, text: str) -> Any:
    choice, _ = _chosen(kind, text, kind)
    return choice.make()


def _chosen(kind: str, text: str, place: str) -> tuple[_Choice, int | None]:
    """Return the policy that ``text`` names, and the number behind the name."""
    name, colon, number = text.partition(":")
    choice = KINDS[kind].get(name)
    if choice is None:
        raise BadInput(place, shown(name), f"the name of a policy for {kind}", nearest(name, list(KINDS[kind])))
    if not colon:
        return choice, choice.default
    if choice.number is None:
        raise BadInput(place, shown(text), f"{name} without a number")
    if choice.takes_bytes and (found := _BYTES.fullmatch(number)):
        size = int(found[1]) * BYTE_UNITS[found[2]]
        if not 1 <= size <= MAX_BUDGET_BYTES:
            raise BadInput(place, shown(text), f"1 to {MAX_BUDGET_BYTES:,} bytes")
        return choice, ByteCount(size)
    if not (number.isascii() and number.isdecimal() and len(number) <= 10 and int(number) in choice.number):
        raise BadInput(place, shown(text), _with_number(name, choice))
    return choice, int(number)
