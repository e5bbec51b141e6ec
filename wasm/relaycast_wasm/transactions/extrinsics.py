"""Transactions for a real runtime, made and signed from its metadata (extrinsic format 4).

What a transaction carries follows the runtime's signed extensions, in their order. One that is not known here and needs
bytes of its own is refused by name, not guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_u32
from relaycast_wasm.metadata.model import Metadata, TransactionExtension
from relaycast_wasm.metadata.type_skip import TypeSkip
from relaycast_wasm.runtime_version import RuntimeVersion
from relaycast_wasm.transactions.signing import Signer

SIGNED, UNSIGNED = b"\x84", b"\x04"
"""How a transaction of format 4 begins."""

LONGEST_PAYLOAD = 256
"""Bytes of a payload that is signed as it is; of a longer one the hash is signed."""

IMMORTAL = b"\x00"

KUSAMA_1020 = ("OnlyStakingAndClaims", "CheckVersion", "CheckGenesis", "CheckEra", "CheckNonce", "CheckWeight")
BEFORE_V11 = tuple(TransactionExtension(name) for name in (*KUSAMA_1020, "ChargeTransactionPayment"))
"""The extensions of runtimes whose metadata is too old to name them: Kusama's first."""

TRANSFERS = ("transfer_allow_death", "transfer")
"""What the call is named that moves money, in newer and in older runtimes."""


@dataclass(frozen=True, slots=True)
class ExtensionData:
    """What an extension adds to a transaction, and what it adds to the signed payload alone."""

    sent: bytes = b""
    signed: bytes = b""


class TransactionWriter:
    """Makes transactions for one runtime on one chain; ``genesis_hash`` ties them to it."""

    def __init__(self, metadata: Metadata, version: RuntimeVersion, genesis_hash: bytes) -> None:
        versions = metadata.extrinsic.versions
        if versions and 4 not in versions:
            raise ValueError(f"transactions of format 4 are written here, the runtime takes {versions}")
        self._metadata, self._version, self._genesis_hash = metadata, version, genesis_hash
        self._extensions = metadata.extrinsic.extensions if versions else BEFORE_V11

    def call(self, pallet: str, name: str, arguments: bytes = b"") -> bytes:
        """Return a call with ``arguments`` in SCALE; ``ValueError`` for one that the runtime does not have."""
        found = self._metadata.pallet(pallet)
        item = None if found is None else next((it for it in found.calls if it.name == name), None)
        if found is None or item is None or found.call_index is None:
            raise ValueError(f"the runtime has no call {pallet}.{name}")
        return bytes([found.call_index, item.index]) + arguments

    def remark(self, data: bytes) -> bytes:
        """Return the call that says ``data`` and does nothing."""
        return self.call("System", "remark", encode_bytes(data))

    def transfer(self, to: bytes, amount: int) -> bytes:
        """Return the call that moves ``amount`` of the smallest unit to an account."""
        balances = self._metadata.pallet("Balances")
        names = {it.name for it in balances.calls} if balances is not None else set()
        name = next((it for it in TRANSFERS if it in names), TRANSFERS[0])
        return self.call("Balances", name, self.address(to) + encode_compact(amount))

    def address(self, account: bytes) -> bytes:
        """Return an account as this runtime writes one: older ones do so in other forms."""
        metadata = self._metadata
        if metadata.types is None:
            prefix = b"\xff" if metadata.version < 11 else b"\x00" if metadata.version > 11 else b""
            return prefix + account
        named = metadata.extrinsic.address
        return account if named is not None and "MultiAddress" not in named.text else b"\x00" + account

    def sign(self, call: bytes, signer: Signer, *, nonce: int, tip: int = 0) -> bytes:
        """Return a signed transaction that never expires, with its length in front."""
        carried = [self._carried(it, nonce=nonce, tip=tip) for it in self._extensions]
        sent = b"".join(it.sent for it in carried)
        payload = call + sent + b"".join(it.signed for it in carried)
        if len(payload) > LONGEST_PAYLOAD:
            payload = blake2_256(payload)
        signature = signer.multi_signature(payload)
        return encode_bytes(SIGNED + self.address(signer.public) + signature + sent + call)

    def unsigned(self, call: bytes) -> bytes:
        """Return an extrinsic that nobody signed, with its length in front."""
        return encode_bytes(UNSIGNED + call)

    def _carried(self, extension: TransactionExtension, *, nonce: int, tip: int) -> ExtensionData:
        version, genesis = self._version, self._genesis_hash
        known: Mapping[str, ExtensionData] = {
            "CheckVersion": ExtensionData(signed=encode_u32(version.spec_version)),
            "CheckSpecVersion": ExtensionData(signed=encode_u32(version.spec_version)),
            "CheckTxVersion": ExtensionData(signed=encode_u32(version.transaction_version)),
            "CheckGenesis": ExtensionData(signed=genesis),
            "CheckEra": ExtensionData(IMMORTAL, genesis),
            "CheckMortality": ExtensionData(IMMORTAL, genesis),
            "CheckNonce": ExtensionData(encode_compact(nonce)),
            "ChargeTransactionPayment": ExtensionData(encode_compact(tip)),
            "ChargeAssetTxPayment": ExtensionData(encode_compact(tip) + b"\x00"),
            "CheckMetadataHash": ExtensionData(b"\x00", b"\x00"),
            "VerifyMultiSignature": ExtensionData(b"\x01"),
            "VerifySignature": ExtensionData(b"\x01"),
        }
        found = known.get(extension.name)
        if found is None and not self._is_empty(extension):
            raise ValueError(f"the runtime's signed extension {extension.name} is not known here")
        return found or ExtensionData()

    def _is_empty(self, extension: TransactionExtension) -> bool:
        types = self._metadata.types
        if types is None:
            return True
        parts: Iterable[int | None] = (it.number for it in (extension.type, extension.additional) if it is not None)
        try:
            for number in parts:
                if number is not None:
                    TypeSkip(types).skip(number, ScaleReader(b""))
        except CodecError:
            return False
        return True
