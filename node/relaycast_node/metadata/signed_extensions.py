"""What a signed extrinsic carries beside its call, in this order, and what is signed without being carried."""

from dataclasses import dataclass

EXTRINSIC_VERSION = 4


@dataclass(frozen=True, slots=True)
class SignedExtension:
    """An extension by its name, which is that of its type too; ``additional`` is signed and not sent."""

    name: str
    additional: str = "()"


SIGNED_EXTENSIONS = (
    SignedExtension("CheckNonZeroSender"),
    SignedExtension("CheckSpecVersion", "u32"),
    SignedExtension("CheckTxVersion", "u32"),
    SignedExtension("CheckGenesis", "H256"),
    SignedExtension("CheckMortality", "H256"),
    SignedExtension("CheckNonce"),
    SignedExtension("CheckWeight"),
    SignedExtension("ChargeTransactionPayment"),
    SignedExtension("CheckMetadataHash", "Option<[u8; 32]>"),
)
