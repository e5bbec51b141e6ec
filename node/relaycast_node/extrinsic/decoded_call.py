"""A call that a runtime has decoded: which pallet, which of its calls, with which arguments."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """``pallet`` and ``name`` as metadata spells them, ``args`` by name, ``data`` the bytes that they encode to."""

    pallet: str
    name: str
    args: dict[str, Any]
    data: bytes

    def __str__(self) -> str:
        return f"{self.pallet}.{self.name}"
