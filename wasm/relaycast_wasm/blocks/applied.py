"""What applying an extrinsic gave: ``ApplyExtrinsicResult``, a result in a result.

The outer one says whether the block includes the extrinsic; the inner one how its call ended.
"""

from dataclasses import dataclass

INVALID = (
    "the call is not expected",
    "the signer cannot pay its fees",
    "its nonce is for a later transaction",
    "its nonce is used up",
    "its signature does not fit",
    "it is signed for an older block",
    "it does not fit into the block",
    "custom",
    "it is a mandatory inherent that failed",
    "a transaction cannot be mandatory",
    "the transaction cannot be signed",
    "its implicit data cannot be made",
    "its signer is unknown",
    "its origin is indeterminate",
)
"""sp-runtime ``InvalidTransaction``, by variant."""

UNKNOWN = ("what it needs is not known", "nobody validates unsigned transactions of its kind", "custom")
"""sp-runtime ``UnknownTransaction``, by variant."""

CUSTOM_INVALID, CUSTOM_UNKNOWN = 7, 2

EXHAUSTS_RESOURCES = b"\x01\x00\x06"
"""A block has no room for the extrinsic; a later one may."""


@dataclass(frozen=True, slots=True)
class RefusedExtrinsic:
    """An extrinsic that a block does not include; the ``result`` is empty when the runtime panicked at it."""

    extrinsic: bytes
    result: bytes
    reason: str


def is_included(result: bytes) -> bool:
    """Return whether the block includes the extrinsic, whose call may still have failed."""
    return result.startswith(b"\x00")


def is_success(result: bytes) -> bool:
    """Return whether the extrinsic is included and its call ended well."""
    return result.startswith(b"\x00\x00")


def reason_of(result: bytes) -> str:
    """Return in words why a block does not include an extrinsic (``TransactionValidityError``)."""
    if len(result) < 3 or result[0] != 1 or result[1] > 1:
        return f"the runtime answers 0x{result.hex()}"
    names, custom = (INVALID, CUSTOM_INVALID) if result[1] == 0 else (UNKNOWN, CUSTOM_UNKNOWN)
    variant = result[2]
    if variant == custom and len(result) > 3:
        return f"{'invalid' if result[1] == 0 else 'unknown'}: custom error {result[3]} of the runtime"
    return names[variant] if variant < len(names) else f"the runtime answers 0x{result.hex()}"
