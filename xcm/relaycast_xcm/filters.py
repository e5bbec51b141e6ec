"""Filters: which locations a barrier or an adapter means (frame-support ``Contains<Location>``)."""

from collections.abc import Iterable
from typing import Protocol

from relaycast_xcm.junctions import Parachain
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID


class LocationFilter(Protocol):
    """Says of a location whether it is meant."""

    def contains(self, location: Location) -> bool: ...


class Everything:
    """Every location."""

    __slots__ = ()

    def contains(self, location: Location) -> bool:  # noqa: ARG002 - the protocol's argument
        return True

    def __repr__(self) -> str:
        return "Everything()"


class Nothing:
    """No location."""

    __slots__ = ()

    def contains(self, location: Location) -> bool:  # noqa: ARG002 - the protocol's argument
        return False

    def __repr__(self) -> str:
        return "Nothing()"


class Equals:
    """One location; a parachain may be given by its number alone."""

    __slots__ = ("location",)

    def __init__(self, location: Location | int) -> None:
        self.location = Location.parachain(location) if isinstance(location, int) else location

    def contains(self, location: Location) -> bool:
        return location == self.location

    def __repr__(self) -> str:
        return f"Equals({self.location})"


class OnlyParachains:
    """The relay chain's own parachains: exactly ``Parachain(id)``, nothing inside one and no sibling (Westend)."""

    __slots__ = ()

    def contains(self, location: Location) -> bool:
        return location.parents == 0 and len(location.interior) == 1 and isinstance(location.interior[0], Parachain)

    def __repr__(self) -> str:
        return "OnlyParachains()"


class IsChildSystemParachain:
    """The relay chain's own parachains with an id below 2,000 (polkadot-sdk xcm-builder)."""

    __slots__ = ()

    def contains(self, location: Location) -> bool:
        return OnlyParachains().contains(location) and _para(location) < LOWEST_PUBLIC_ID

    def __repr__(self) -> str:
        return "IsChildSystemParachain()"


class IsInVec:
    """The locations of a list."""

    __slots__ = ("locations",)

    def __init__(self, locations: Iterable[Location | int]) -> None:
        self.locations = frozenset(Location.parachain(item) if isinstance(item, int) else item for item in locations)

    def contains(self, location: Location) -> bool:
        return location in self.locations

    def __repr__(self) -> str:
        return f"IsInVec({', '.join(sorted(map(str, self.locations)))})"


class AnyOf:
    """What any of some filters contains."""

    __slots__ = ("filters",)

    def __init__(self, *filters: LocationFilter) -> None:
        self.filters = filters

    def contains(self, location: Location) -> bool:
        return any(inner.contains(location) for inner in self.filters)

    def __repr__(self) -> str:
        return f"AnyOf({', '.join(map(repr, self.filters))})"


def _para(location: Location) -> int:
    junction = location.interior[0]
    assert isinstance(junction, Parachain), "INVARIANT: asked only of what OnlyParachains contains"
    return junction.id
