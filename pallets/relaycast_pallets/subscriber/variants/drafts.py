"""Policies of public drafts: each breaks an invariant or costs more, as comparisons show."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from msgspec import Struct

from relaycast_pallets.subscriber.policies import Root, WhenPublisherDone
from relaycast_xcm.primitives import DbWeight, ParaId, Weight


class SystemFirstNumeric(Struct, frozen=True):
    """System parachains, then the others, by number: low numbers are always first."""

    def arrange(self, publishers: Iterable[ParaId], seed: bytes) -> list[ParaId]:  # noqa: ARG002 - nothing is drawn
        return sorted(publishers)


class ValuesOnly(Struct, frozen=True):
    """Values are charged, nodes are free: the proof grows past the budget (the draft's ``process_proof``)."""

    charges_own_state: ClassVar[bool] = False

    def relay_node(self, db_weight: DbWeight, size: int) -> Weight:  # noqa: ARG002 - free, that is the point
        return Weight.ZERO

    def relay_value(self, db_weight: DbWeight, size: int) -> Weight:
        return Weight(db_weight.read, size)

    cached_node = relay_node


class AfterFirstKey(WhenPublisherDone, frozen=True):
    """The new root is remembered although keys are left: those keys are never delivered."""

    keeps_updates: ClassVar[bool] = False

    def when_stopped(self, old: Root | None, new: Root) -> Root | None:  # noqa: ARG002 - the mistake itself
        return new


class ForgetUnchanged(WhenPublisherDone, frozen=True):
    """Only what changed in this block is remembered: an unchanged publisher is delivered again every other block."""

    def when_complete(self, stored: Mapping[ParaId, Root], changed: Mapping[ParaId, Root]) -> dict[ParaId, Root]:  # noqa: ARG002
        return dict(changed)


class AllKeysOnChange(Struct, frozen=True):
    """Every subscribed key is delivered once for each new root of its publisher: all paths and values are read."""

    def compared_with(self, base: Root | None) -> Root | None:  # noqa: ARG002 - with nothing
        return None


class NoCache(Struct, frozen=True):
    """Nothing stays: every block with a change proves all subscribed paths again."""

    def keeps(self, node: bytes) -> bool:  # noqa: ARG002 - none
        return False


class Basic(Struct, frozen=True):
    """One message in full is enough: a collator may postpone others that would fit."""

    def allows(self, *, full_bytes: int, largest_next: int, room: int) -> bool:  # noqa: ARG002 - nothing is compared
        return True
