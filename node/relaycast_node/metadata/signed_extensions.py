"""What a signed extrinsic carries beside its call, in this order, what is signed unsent, and the type of it all."""

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

ADDRESS, SIGNATURE = "MultiAddress<AccountId32, ()>", "MultiSignature"
EXTRA = "(" + "".join(f"{it.name}, " for it in SIGNED_EXTENSIONS) + ")"
EXTRINSIC = f"UncheckedExtrinsic<{ADDRESS}, RuntimeCall, {SIGNATURE}, {EXTRA}>"
"""The type of an extrinsic: clients find those of addresses, calls and signatures by its parameters."""
