"""Who asks the manager for something."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody by name; an admin sees and changes the subscriptions of all."""

    name: str
    is_admin: bool = False
    principal: bytes | None = None
    """Whom canisters see, where that is fixed; else it follows from the name."""

    def may_use(self, owner: str) -> bool:
        return self.is_admin or self.name == owner


EVERYBODY_HERE = Caller("local", is_admin=True)
"""Whoever reaches a gateway that asks for no token."""
