"""How a call is made and how it ends: its origin, its refusal, what it weighed and whether it paid.

A refusal encodes as sp-runtime's ``DispatchError``: a pallet's own error unless its class names another variant.

::

    DispatchError
    ├── BadOrigin            the call is not open to this origin
    ├── ExhaustsResources    the block has too little weight left (Exhausted)
    ├── ConsumerRemaining    an account that something still depends on would go
    ├── NoProviders          a reference to an account that nothing keeps
    ├── TokenError           a balance does not allow it; ``detail`` says why (Token)
    └── ArithmeticOverflow   a sum beyond u128 (Arithmetic)
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Annotated, ClassVar

from msgspec import Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import AccountId, ParaId, Rust, Weight

DISPATCH_ERRORS = (
    "Other",
    "CannotLookup",
    "BadOrigin",
    "Module",
    "ConsumerRemaining",
    "NoProviders",
    "TooManyConsumers",
    "Token",
    "Arithmetic",
    "Transactional",
    "Exhausted",
    "Corruption",
    "Unavailable",
    "RootNotAllowed",
    "Trie",
)
"""The variants of sp-runtime's ``DispatchError``, in its order."""

TOKEN_ERRORS = (
    "FundsUnavailable",
    "OnlyProvider",
    "BelowMinimum",
    "CannotCreate",
    "UnknownAsset",
    "Frozen",
    "Unsupported",
    "CannotCreateHold",
    "NotExpendable",
    "Blocked",
)
"""The variants of sp-runtime's ``TokenError``, in its order."""

ARITHMETIC_ERRORS = ("Underflow", "Overflow", "DivisionByZero")
"""The variants of sp-arithmetic's ``ArithmeticError``, in its order."""

DETAILS: Mapping[str, tuple[str, ...]] = MappingProxyType({"Token": TOKEN_ERRORS, "Arithmetic": ARITHMETIC_ERRORS})
"""The variants that hold another enumeration, with its variants."""


class DispatchError(RelaycastError):
    """A call that is refused; the state stays as it was."""

    variant: ClassVar[str] = "Module"
    """One of ``DISPATCH_ERRORS``; ``Module`` for an error that a pallet declares itself."""

    detail: ClassVar[str] = ""
    """Which one of ``DETAILS[variant]``, for the variants that have details."""

    @classmethod
    def encode(cls, *, module: tuple[int, int] | None = None) -> bytes:
        """Return the SCALE ``DispatchError``; ``module`` holds the pallet's index and the error's in its pallet.

        ``ValueError`` for a pallet's own error without them.
        """
        index = bytes([DISPATCH_ERRORS.index(cls.variant)])
        if cls.variant == "Module":
            if module is None:
                raise ValueError(f"{cls.__name__} is a pallet's own error: expected the indices of pallet and error")
            return index + bytes([*module, 0, 0, 0])
        return index + bytes([DETAILS[cls.variant].index(cls.detail)] if cls.variant in DETAILS else [])


class TokenError(DispatchError):
    """A balance that does not allow the call."""

    variant = "Token"


class BadOrigin(DispatchError, message="the origin is {origin}, expected {expected}"):
    """The call is not open to this ``origin``; ``expected`` says to whom it is."""

    variant = "BadOrigin"

    origin: "Origin"
    expected: str


class ExhaustsResources(DispatchError, message="the call declares {declared}, the block has {left} left"):
    """A call that ``declares`` more weight than the block has ``left`` (``InvalidTransaction::ExhaustsResources``)."""

    variant = "Exhausted"

    declared: Weight
    left: Weight


class ConsumerRemaining(
    DispatchError, message="account {account} is still needed: it must keep the existential deposit"
):
    """``account`` would lose the deposit that keeps it, while a hold still depends on it."""

    variant = "ConsumerRemaining"

    account: AccountId


class NoProviders(DispatchError, message="account {account} does not exist"):
    """``account`` does not exist, so nothing can depend on it."""

    variant = "NoProviders"

    account: AccountId


class ArithmeticOverflow(DispatchError, message="{total} does not fit into a u128"):
    """``total`` is more than the largest u128 (``ArithmeticError::Overflow``)."""

    variant = "Arithmetic"
    detail = "Overflow"

    total: int


class Origin(Struct, frozen=True):
    """Who makes a call: governance (``root``), an account, a parachain through XCM, or nobody (an inherent)."""

    kind: str
    account: AccountId | None = None
    para_id: ParaId | None = None

    @classmethod
    def root(cls) -> "Origin":
        return cls("root")

    @classmethod
    def signed(cls, account: AccountId) -> "Origin":
        if len(account) != 32:
            raise ValueError(f"an account id has 32 bytes, got {len(account)}")
        return cls("signed", account=account)

    @classmethod
    def parachain(cls, para_id: int) -> "Origin":
        return cls("parachain", para_id=ParaId(para_id))

    @classmethod
    def none(cls) -> "Origin":
        return cls("none")

    def __str__(self) -> str:
        if self.account is not None:
            return f"account 0x{self.account.hex()}"
        return self.kind if self.para_id is None else f"parachain {self.para_id}"


def ensure_root(origin: Origin) -> None:
    """Refuse every origin but governance with ``BadOrigin``."""
    if origin.kind != "root":
        raise BadOrigin(origin, "root")


def ensure_signed(origin: Origin) -> AccountId:
    """Return the account that signed; ``BadOrigin`` when none did."""
    if origin.account is None:
        raise BadOrigin(origin, "an account")
    return origin.account


def ensure_parachain(origin: Origin) -> ParaId:
    """Return the parachain that calls; ``BadOrigin`` when none does."""
    if origin.para_id is None:
        raise BadOrigin(origin, "a parachain")
    return origin.para_id


def ensure_none(origin: Origin) -> None:
    """Refuse every origin but that of an inherent with ``BadOrigin``."""
    if origin.kind != "none":
        raise BadOrigin(origin, "none")


class DispatchClass(Enum):
    """What a call is to its block (frame-support ``DispatchClass``)."""

    Normal = 0
    Operational = 1
    Mandatory = 2


class Pays(Enum):
    """Whether the sender pays for a call (frame-support ``Pays``)."""

    Yes = 0
    No = 1


class DispatchInfo(Struct, frozen=True):
    """What a call weighed, its class, and whether its sender paid."""

    weight: Weight
    class_: DispatchClass = DispatchClass.Normal
    pays_fee: Pays = Pays.Yes


class PostDispatchInfo(Struct, frozen=True):
    """What a call used and whether its sender pays; a call that returns its ``Weight`` alone is paid for."""

    weight: Weight
    pays_fee: Pays = Pays.Yes

    @classmethod
    def of(cls, returned: "Weight | PostDispatchInfo") -> "PostDispatchInfo":
        return cls(returned) if isinstance(returned, Weight) else returned


class DispatchResult(Struct, frozen=True):
    """How a call ended: what it weighed, why it was refused if it was, and whether its sender pays."""

    weight: Weight
    error: DispatchError | None = None
    pays_fee: Pays = Pays.Yes

    @property
    def used(self) -> PostDispatchInfo:
        """What the fee is worked out from."""
        return PostDispatchInfo(self.weight, self.pays_fee)

    @property
    def ok(self) -> bool:
        return self.error is None


AnyDispatchError = Annotated[DispatchError, Rust("DispatchError")]

NestedResult = Annotated[DispatchError | None, Rust("Result<(), DispatchError>")]
"""How a call inside another one ended: ``None`` when it was not refused."""
