"""Whether a chain takes an extrinsic, and how it relates to others (frame-executive ``validate_transaction``).

Checks run in the runtime's order, and the first that fails is the answer: the address, the era's block, the metadata
hash, the signature, then the signed extensions. The extrinsic is judged as one of the next block, ``block_number + 1``.

A nonce above the account's is not an error here. The extrinsic then *requires* the tag of the nonce below, and the pool
keeps it until another one *provides* that tag. A tag is the account and the nonce in SCALE.
"""

from dataclasses import dataclass
from typing import Protocol

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import (
    Extra,
    Extrinsic,
    Implicit,
    MetadataHashMode,
    Signed,
    decode_extrinsic,
    signing_payload,
)
from relaycast_node.extrinsic.signature import ACCOUNT_BYTES, AddressKind, MultiAddress, verify
from relaycast_node.extrinsic.validity_errors import (
    Invalid,
    InvalidTransaction,
    Unknown,
    UnknownTransaction,
    decode_refusal,
)
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u8, encode_u32, encode_u64, encode_vec
from relaycast_xcm.primitives import U64_MAX, BlockNumber, Weight

NOBODY = bytes(ACCOUNT_BYTES)
"""The account that nobody can sign for (``CheckNonZeroSender``)."""


class PoolView(Protocol):
    """A chain as the pool sees it: after block ``block_number``."""

    @property
    def block_number(self) -> BlockNumber: ...

    def block_hash(self, number: BlockNumber) -> bytes | None:
        """Return the hash of a block; that of its newest one is known."""

    def nonce(self, account: bytes) -> int:
        """Return the nonce that the account's next extrinsic has."""

    def judge(self, data: bytes) -> "ValidTransaction":
        """Say how the encoded extrinsic ``data`` may enter the next block, or a later one.

        Raises ``InvalidTransaction``, ``UnknownTransaction``, and ``CodecError`` where it does not decode.
        """

    def provided_by(self, data: bytes) -> tuple[bytes, ...]:
        """Return the tags that an extrinsic of the newest block provides; none where nobody signed it."""


class ValidationView(Protocol):
    """A chain as its state after block ``block_number`` shows it."""

    @property
    def genesis_hash(self) -> bytes: ...
    @property
    def spec_version(self) -> int: ...
    @property
    def transaction_version(self) -> int: ...
    @property
    def block_number(self) -> BlockNumber: ...

    def block_hash(self, number: BlockNumber) -> bytes | None:
        """Return a hash that ``System.BlockHash`` holds while the next block runs: genesis and this block have one."""

    def nonce(self, account: bytes) -> int:
        """Return the nonce that the account's next extrinsic has; 0 where there is no account."""

    def can_pay(self, account: bytes, fee: int) -> bool:
        """Return whether the account exists and can pay ``fee``: a fee of 0 asks whether it exists."""

    def fee(self, call: DecodedCall, encoded_length: int, tip: int) -> int:
        """Return the whole fee, the tip included."""

    def decode_call(self, data: bytes) -> DecodedCall:
        """Decode the bytes of a call; raises ``CodecError``."""

    def weight_fits(self, call: DecodedCall, encoded_length: int) -> bool:
        """Return whether an empty block has room for the call's weight and bytes."""

    def is_mandatory(self, call: DecodedCall) -> bool:
        """Return whether the call is for inherents only (``DispatchClass::Mandatory``)."""

    def transactions_per_block(self, call: DecodedCall, encoded_length: int) -> int:
        """Return how many such extrinsics an empty block holds; ``how_many_fit`` computes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidTransaction:
    """How a valid extrinsic relates to others; ``longevity`` in blocks from now."""

    priority: int = 0
    requires: tuple[bytes, ...] = ()
    provides: tuple[bytes, ...] = ()
    longevity: int = U64_MAX
    propagate: bool = True

    def encode(self) -> bytes:
        tags = encode_vec(map(encode_bytes, self.requires)) + encode_vec(map(encode_bytes, self.provides))
        return encode_u64(self.priority) + tags + encode_u64(self.longevity) + encode_u8(self.propagate)

    def encode_result(self) -> bytes:
        """SCALE ``TransactionValidity``, a ``Result`` that holds this."""
        return b"\x00" + self.encode()


def decode_validity(data: bytes) -> ValidTransaction:
    """Return the valid transaction in SCALE ``TransactionValidity``.

    Raises the ``InvalidTransaction`` or ``UnknownTransaction`` in its place, and ``CodecError``.
    """
    reader = ScaleReader(data)
    if reader.u8():
        raise decode_refusal(reader)
    found = ValidTransaction(
        priority=reader.u64(),
        requires=tuple(reader.bytes_() for _ in range(reader.length())),
        provides=tuple(reader.bytes_() for _ in range(reader.length())),
        longevity=reader.u64(),
        propagate=reader.u8() != 0,
    )
    reader.done()
    return found


class JudgedHere:
    """What a ``ValidationView`` needs to be a ``PoolView``: its extrinsics are judged by this module."""

    def judge(self: ValidationView, data: bytes) -> ValidTransaction:
        return validate(decode_extrinsic(data), self)

    def provided_by(self, data: bytes) -> tuple[bytes, ...]:
        match decode_extrinsic(data):
            case Signed(MultiAddress(AddressKind.ID, account), _, extra):
                return (nonce_tag(account, extra.nonce),)
            case _:
                return ()


def nonce_tag(account: bytes, nonce: int) -> bytes:
    """Return the tag that the extrinsic with this nonce provides."""
    return account + encode_u32(nonce)


def how_many_fit(weight: Weight, encoded_length: int, *, block_weight: Weight, block_length: int) -> int:
    """Return how many extrinsics of this weight and length an empty block holds, by the scarcer of the two."""
    bounded = weight.max(Weight(1, 1)).min(block_weight)
    parts = ((block_weight.ref_time, bounded.ref_time), (block_weight.proof_size, bounded.proof_size))
    by_weight = min((whole // part for whole, part in parts if part), default=1)
    return min(by_weight, block_length // min(max(encoded_length, 1), block_length))


def validate(extrinsic: Extrinsic, view: ValidationView) -> ValidTransaction:
    """Say how ``extrinsic`` may enter the next block, or a later one.

    Raises ``InvalidTransaction`` or ``UnknownTransaction``, and ``CodecError`` where its call does not decode.
    """
    call = view.decode_call(extrinsic.call)
    if isinstance(extrinsic, Signed):
        return _validate_signed(extrinsic, call, view)
    if view.is_mandatory(call):
        raise InvalidTransaction(Invalid.MANDATORY_VALIDATION)
    raise UnknownTransaction(Unknown.NO_UNSIGNED_VALIDATOR)


def pre_dispatch(extrinsic: Extrinsic, view: ValidationView) -> None:
    """Refuse what the next block cannot run now: as ``validate``, but a nonce that is too high is ``Future``.

    A bare call that is mandatory passes: it is an inherent.
    """
    if not isinstance(extrinsic, Signed) and view.is_mandatory(view.decode_call(extrinsic.call)):
        return
    if validate(extrinsic, view).requires:
        raise InvalidTransaction(Invalid.FUTURE)


def implicit_of(extra: Extra, view: ValidationView) -> Implicit:
    """Return what the signature of an extrinsic with this extra covers on this chain.

    Raises ``InvalidTransaction`` where the block at which the era began is unknown, and ``UnknownTransaction`` where
    the payload wants a hash of the metadata: this chain has none.
    """
    birth_hash = view.block_hash(extra.era.birth(view.block_number + 1))
    if birth_hash is None:
        raise InvalidTransaction(Invalid.ANCIENT_BIRTH_BLOCK)
    if extra.mode is MetadataHashMode.ENABLED:
        raise UnknownTransaction(Unknown.CANNOT_LOOKUP)
    return Implicit(view.spec_version, view.transaction_version, view.genesis_hash, birth_hash)


def _validate_signed(extrinsic: Signed, call: DecodedCall, view: ValidationView) -> ValidTransaction:
    account, extra = extrinsic.address.account, extrinsic.extra
    if account is None:
        raise UnknownTransaction(Unknown.CANNOT_LOOKUP)
    payload = signing_payload(extrinsic.call, extra, implicit_of(extra, view))
    if not verify(extrinsic.signature, payload, account):
        raise InvalidTransaction(Invalid.BAD_PROOF)
    if view.is_mandatory(call):
        raise InvalidTransaction(Invalid.MANDATORY_VALIDATION)

    if account == NOBODY:
        raise InvalidTransaction(Invalid.BAD_SIGNER)
    if not view.can_pay(account, 0):
        raise InvalidTransaction(Invalid.PAYMENT)
    nonce = view.nonce(account)
    if extra.nonce < nonce:
        raise InvalidTransaction(Invalid.STALE)
    length = len(extrinsic.encode())
    if not view.weight_fits(call, length):
        raise InvalidTransaction(Invalid.EXHAUSTS_RESOURCES)
    if not view.can_pay(account, view.fee(call, length, extra.tip)):
        raise InvalidTransaction(Invalid.PAYMENT)

    current = view.block_number + 1
    return ValidTransaction(
        priority=min((extra.tip + 1) * view.transactions_per_block(call, length), U64_MAX),
        requires=(nonce_tag(account, extra.nonce - 1),) if extra.nonce > nonce else (),
        provides=(nonce_tag(account, extra.nonce),),
        longevity=extra.era.death(current) - current,
    )
