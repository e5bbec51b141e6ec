"""Why a chain does not take an extrinsic (sp-runtime ``TransactionValidityError``), in Substrate's bytes and words.

::

    RelaycastError
    └── TransactionValidityError
        ├── InvalidTransaction      it cannot be included at this block
        └── UnknownTransaction      nobody can tell
"""

from abc import abstractmethod
from enum import IntEnum

from relaycast_trie.exceptions import CodecError, RelaycastError
from relaycast_trie.scale import ScaleReader, encode_u8


class Invalid(IntEnum):
    """The variants of ``InvalidTransaction``."""

    CALL = 0
    PAYMENT = 1
    FUTURE = 2
    STALE = 3
    BAD_PROOF = 4
    ANCIENT_BIRTH_BLOCK = 5
    EXHAUSTS_RESOURCES = 6
    CUSTOM = 7
    BAD_MANDATORY = 8
    MANDATORY_VALIDATION = 9
    BAD_SIGNER = 10
    INDETERMINATE_IMPLICIT = 11
    UNKNOWN_ORIGIN = 12


INVALID_TEXTS = {
    Invalid.CALL: "Transaction call is not expected",
    Invalid.PAYMENT: "Inability to pay some fees (e.g. account balance too low)",
    Invalid.FUTURE: "Transaction will be valid in the future",
    Invalid.STALE: "Transaction is outdated",
    Invalid.BAD_PROOF: "Transaction has a bad signature",
    Invalid.ANCIENT_BIRTH_BLOCK: "Transaction has an ancient birth block",
    Invalid.EXHAUSTS_RESOURCES: "Transaction would exhaust the block limits",
    Invalid.CUSTOM: "InvalidTransaction custom error",
    Invalid.BAD_MANDATORY: "A call was labelled as mandatory, but resulted in an Error.",
    Invalid.MANDATORY_VALIDATION: "Transaction dispatch is mandatory; transactions must not be validated.",
    Invalid.BAD_SIGNER: "Invalid signing address",
    Invalid.INDETERMINATE_IMPLICIT: "The implicit data was unable to be calculated",
    Invalid.UNKNOWN_ORIGIN: "The transaction extension did not authorize any origin",
}


class Unknown(IntEnum):
    """The variants of ``UnknownTransaction``."""

    CANNOT_LOOKUP = 0
    NO_UNSIGNED_VALIDATOR = 1
    CUSTOM = 2


UNKNOWN_TEXTS = {
    Unknown.CANNOT_LOOKUP: "Could not lookup information required to validate the transaction",
    Unknown.NO_UNSIGNED_VALIDATOR: "Could not find an unsigned validator for the unsigned transaction",
    Unknown.CUSTOM: "UnknownTransaction custom error",
}


class TransactionValidityError(RelaycastError):
    """An extrinsic that is not valid, or whose validity is unknown."""

    @abstractmethod
    def encode(self) -> bytes:
        """SCALE ``TransactionValidityError``."""

    def encode_result(self) -> bytes:
        """SCALE ``TransactionValidity``, a ``Result`` that holds this error."""
        return b"\x01" + self.encode()


class InvalidTransaction(TransactionValidityError):
    """An extrinsic that cannot be included, for ``reason``; ``custom`` is the number of a custom reason."""

    reason: Invalid
    custom: int = 0

    def encode(self) -> bytes:
        return b"\x00" + _variant(self.reason, Invalid.CUSTOM, self.custom)

    def __str__(self) -> str:
        return INVALID_TEXTS[self.reason]

    @property
    def rust_name(self) -> str:
        """The variant as Rust prints it, such as ``BadProof``."""
        return _rust_name(self.reason, Invalid.CUSTOM, self.custom)


class UnknownTransaction(TransactionValidityError):
    """An extrinsic whose validity cannot be told, for ``reason``; ``custom`` is the number of a custom reason."""

    reason: Unknown
    custom: int = 0

    def encode(self) -> bytes:
        return b"\x01" + _variant(self.reason, Unknown.CUSTOM, self.custom)

    def __str__(self) -> str:
        return UNKNOWN_TEXTS[self.reason]

    @property
    def rust_name(self) -> str:
        """The variant as Rust prints it, such as ``CannotLookup``."""
        return _rust_name(self.reason, Unknown.CUSTOM, self.custom)


def decode_refusal(reader: ScaleReader) -> InvalidTransaction | UnknownTransaction:
    """Read SCALE ``TransactionValidityError``; raises ``CodecError``."""
    start = reader.offset
    kind, variant = reader.u8(), reader.u8()
    try:
        if kind == 0:
            invalid = Invalid(variant)
            return InvalidTransaction(invalid, reader.u8() if invalid is Invalid.CUSTOM else 0)
        if kind == 1:
            unknown = Unknown(variant)
            return UnknownTransaction(unknown, reader.u8() if unknown is Unknown.CUSTOM else 0)
    except ValueError:
        pass
    raise CodecError(f"no reason why a transaction is not valid is {kind}, {variant}", start)


def _variant(reason: IntEnum, custom: IntEnum, number: int) -> bytes:
    return encode_u8(reason) + (encode_u8(number) if reason == custom else b"")


def _rust_name(reason: IntEnum, custom: IntEnum, number: int) -> str:
    name = reason.name.title().replace("_", "")
    return f"{name}({number})" if reason == custom else name
