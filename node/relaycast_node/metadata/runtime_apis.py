"""Runtime APIs that clients call: their names, versions, and the types of their methods."""

from dataclasses import dataclass
from hashlib import blake2b

from relaycast_node.metadata.signed_extensions import EXTRINSIC


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """A method: its inputs by name, and its output, as Rust spells them."""

    name: str
    inputs: tuple[tuple[str, str], ...]
    output: str


@dataclass(frozen=True, slots=True)
class RuntimeApi:
    """A set of methods under one name and version."""

    name: str
    version: int
    methods: tuple[ApiMethod, ...]

    @property
    def id(self) -> bytes:
        """Return the eight bytes that a runtime's version lists: Blake2b-64 of the name."""
        return blake2b(self.name.encode(), digest_size=8).digest()


def _query_methods(call: str) -> tuple[ApiMethod, ...]:
    """Return the methods that say what a transaction, or a call, costs."""
    of_call = "call_" if call == "RuntimeCall" else ""
    name = "call" if call == "RuntimeCall" else "uxt"
    inputs = ((name, call), ("len", "u32"))
    return (
        ApiMethod(f"query_{of_call}info", inputs, "RuntimeDispatchInfo"),
        ApiMethod(f"query_{of_call}fee_details", inputs, "FeeDetails"),
        ApiMethod("query_weight_to_fee", (("weight", "Weight"),), "u128"),
        ApiMethod("query_length_to_fee", (("length", "u32"),), "u128"),
    )


RUNTIME_APIS = (
    RuntimeApi("Core", 5, (ApiMethod("version", (), "RuntimeVersion"),)),
    RuntimeApi(
        "Metadata",
        2,
        (
            ApiMethod("metadata", (), "OpaqueMetadata"),
            ApiMethod("metadata_at_version", (("version", "u32"),), "Option<OpaqueMetadata>"),
            ApiMethod("metadata_versions", (), "Vec<u32>"),
        ),
    ),
    RuntimeApi(
        "TaggedTransactionQueue",
        3,
        (
            ApiMethod(
                "validate_transaction",
                (("source", "TransactionSource"), ("tx", EXTRINSIC), ("block_hash", "H256")),
                "Result<ValidTransaction, TransactionValidityError>",
            ),
        ),
    ),
    RuntimeApi("AccountNonceApi", 1, (ApiMethod("account_nonce", (("account", "AccountId32"),), "u32"),)),
    RuntimeApi("TransactionPaymentApi", 4, _query_methods(EXTRINSIC)),
    RuntimeApi("TransactionPaymentCallApi", 3, _query_methods("RuntimeCall")),
)
