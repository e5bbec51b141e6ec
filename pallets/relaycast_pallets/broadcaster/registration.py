"""Which parachains an account may register as publishers; governance may register any.

A policy is part of the broadcaster's configuration; the pallet never asks for its name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, ParaId


class Registration(Protocol):
    """Whether an account may register ``para_id``."""

    def admits(self, para_id: ParaId) -> bool: ...


class PublicParachains(Struct, frozen=True):
    """Public parachains alone: a system parachain publishes unregistered, and nobody can become its manager."""

    def admits(self, para_id: ParaId) -> bool:
        return para_id >= LOWEST_PUBLIC_ID


class AnyParachain(Struct, frozen=True):
    """Any parachain, as in the drafts: whoever registers a system parachain may clean up what it published."""

    def admits(self, para_id: ParaId) -> bool:  # noqa: ARG002 - any
        return True


REGISTRATIONS: Mapping[str, Registration] = MappingProxyType({"public": PublicParachains(), "open": AnyParachain()})
"""Every policy by its name, the default first."""
