"""Skips: a subscription that asks for one event of every ``mod``.

Law: an event is counted by its ordinal, its 1-based position in its namespace in the log, before any filter. It is
selected if ordinal and offset leave the same remainder when divided by ``mod``. Subscriptions with the offsets 0 to
``mod`` - 1 therefore divide the events of a namespace among themselves: each event goes to exactly one. The offset is 0
by default. Source: ICRC-72, ``icrc72:subscription:skip``.
"""

from dataclasses import dataclass

from relaycast_gateway.icrc16 import Icrc16, Tag


@dataclass(frozen=True, slots=True)
class Skip:
    """Every ``mod``-th event; ``mod`` is at least 1, ``offset`` any natural number."""

    mod: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.mod < 1:
            raise ValueError(f"skip: expected a divisor of at least 1, got {self.mod}")
        if self.offset < 0:
            raise ValueError(f"skip: expected a natural number as offset, got {self.offset}")

    def selects(self, ordinal: int) -> bool:
        """Return whether the event at the 1-based position ``ordinal`` of its namespace is sent."""
        return (ordinal - self.offset) % self.mod == 0

    def agrees_with(self, other: "Skip") -> bool:
        """Return whether both select the same events."""
        return self.mod == other.mod and (self.offset - other.offset) % self.mod == 0


def skip_of(value: Icrc16) -> Skip:
    """Return the skip that a configuration's ``Nat``, ``Array[Nat]`` or ``Array[Nat, Nat]`` asks for.

    ``ValueError`` names what is wrong: another form, or the divisor 0.
    """
    numbers = value.content if value.tag is Tag.ARRAY else (value,)
    if not 1 <= len(numbers) <= 2 or any(each.tag is not Tag.NAT for each in numbers):
        raise ValueError(f"skip: expected Nat, Array[Nat] or Array[Nat, Nat], got {_form(value)}")
    return Skip(*(each.content for each in numbers))


def _form(value: Icrc16) -> str:
    if value.tag is not Tag.ARRAY:
        return str(value.tag)
    shown = [str(each.tag) for each in value.content[:3]] + ["..."] * (len(value.content) > 3)
    return f"Array[{', '.join(shown)}]"
