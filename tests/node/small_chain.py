"""A chain small enough to hold in the hand, for what extrinsics and the pool ask of one."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from relaycast_node.extrinsic.accounts import KeyPair, dev_account
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.era import IMMORTAL, Era
from relaycast_node.extrinsic.extrinsic import Extra, MetadataHashMode, Signed, decode_extrinsic, sign
from relaycast_node.extrinsic.signature import Scheme
from relaycast_node.extrinsic.validity import JudgedHere, implicit_of
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u64

ALICE = dev_account("Alice", Scheme.ED25519)
BOB = dev_account("Bob", Scheme.ED25519)
CHARLIE = dev_account("Charlie", Scheme.ED25519)

KEPT_HASHES = 250
LONGEST = 1_000
FEE = 10


def remark(text: bytes) -> bytes:
    return b"\x00\x00" + encode_bytes(text)


def set_timestamp(now: int) -> bytes:
    return b"\x03\x00" + encode_u64(now)


@dataclass(frozen=True)
class SmallChain(JudgedHere):
    """A ``ValidationView`` and ``PoolView``: two calls, a fee of 10 and the tip, an era's block kept for 250 blocks."""

    block_number: int = 10
    nonces: dict[bytes, int] = field(default_factory=dict)
    balances: dict[bytes, int] = field(
        default_factory=lambda: dict.fromkeys((ALICE.account, BOB.account, CHARLIE.account), 1 << 100)
    )
    fork: bytes = b""
    genesis_hash: bytes = blake2_256(b"genesis")
    spec_version: int = 1003
    transaction_version: int = 7
    per_block: int = 1

    def block_hash(self, number: int) -> bytes | None:
        if number == 0:
            return self.genesis_hash
        kept = max(self.block_number - KEPT_HASHES, 1) <= number <= self.block_number
        return blake2_256(b"block %d" % number + self.fork) if kept else None

    def nonce(self, account: bytes) -> int:
        return self.nonces.get(account, 0)

    def can_pay(self, account: bytes, fee: int) -> bool:
        return account in self.balances and self.balances[account] >= fee

    def fee(self, call: DecodedCall, encoded_length: int, tip: int) -> int:
        return FEE + tip

    def decode_call(self, data: bytes) -> DecodedCall:
        reader = ScaleReader(data)
        match reader.take(2):
            case b"\x00\x00":
                call = DecodedCall("System", "remark", {"remark": reader.bytes_()}, data)
            case b"\x03\x00":
                call = DecodedCall("Timestamp", "set", {"now": reader.u64()}, data)
            case other:
                raise CodecError(f"no call has the indices 0x{other.hex()}", 0)
        reader.done()
        return call

    def weight_fits(self, call: DecodedCall, encoded_length: int) -> bool:
        return encoded_length <= LONGEST

    def is_mandatory(self, call: DecodedCall) -> bool:
        return call.pallet == "Timestamp"

    def transactions_per_block(self, call: DecodedCall, encoded_length: int) -> int:
        return self.per_block

    def after(self, included: Iterable[bytes]) -> "SmallChain":
        """Return the chain with a block that includes these extrinsics."""
        nonces = dict(self.nonces)
        for data in included:
            extrinsic = decode_extrinsic(data)
            if isinstance(extrinsic, Signed):
                account = extrinsic.address.account
                assert account is not None
                nonces[account] = nonces.get(account, 0) + 1
        return replace(self, block_number=self.block_number + 1, nonces=nonces)


def signed(
    view: SmallChain,
    pair: KeyPair,
    nonce: int,
    *,
    tip: int = 0,
    era: Era = IMMORTAL,
    call: bytes = remark(b""),
    mode: MetadataHashMode = MetadataHashMode.DISABLED,
) -> bytes:
    extra = Extra(nonce, era=era, tip=tip)
    extrinsic = sign(pair, call, extra, implicit_of(extra, view))
    return replace(extrinsic, extra=replace(extra, mode=mode)).encode()
