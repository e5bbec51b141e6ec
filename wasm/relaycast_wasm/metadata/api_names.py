"""Runtime APIs by name: a runtime's version lists them by eight bytes, Blake2b-64 of the name."""

from collections.abc import Iterable
from hashlib import blake2b

from relaycast_wasm.metadata.model import Metadata

KNOWN_APIS = (
    # sp-api, frame and the node
    "Core", "Metadata", "BlockBuilder", "TaggedTransactionQueue", "OffchainWorkerApi", "SessionKeys", "GenesisBuilder",
    "AccountNonceApi", "TransactionPaymentApi", "TransactionPaymentCallApi", "RuntimeViewFunction", "ValidateStatement",
    "MixnetApi", "TransactionStorageApi", "Benchmark", "TryRuntime", "DifficultyApi", "TimestampApi",
    # consensus
    "BabeApi", "AuraApi", "GrandpaApi", "BeefyApi", "MmrApi", "BeefyMmrApi", "AuthorityDiscoveryApi", "SassafrasApi",
    # relay chains and parachains
    "ParachainHost", "CollectCollationInfo", "AuraUnincludedSegmentApi", "GetCoreSelectorApi", "GetParachainInfo",
    "RelayParentOffsetApi", "SlotSchedule", "TargetBlockRate", "KeyToIncludeInRelayProof",
    # pallets
    "StakingApi", "NominationPoolsApi", "AssetsApi", "FungiblesApi", "NftsApi", "AssetConversionApi", "AssetRewards",
    "ContractsApi", "ReviveApi", "XcmPaymentApi", "DryRunApi", "LocationToAccountApi", "TrustedQueryApi",
    "AuthorizedAliasersApi", "Inflation",
    # bridges
    "RococoFinalityApi", "WestendFinalityApi", "KusamaFinalityApi", "PolkadotFinalityApi",
    "PolkadotBulletinFinalityApi", "BridgeHubRococoFinalityApi", "BridgeHubWestendFinalityApi",
    "BridgeHubKusamaFinalityApi", "BridgeHubPolkadotFinalityApi", "FromBridgeHubRococoInboundLaneApi",
    "FromBridgeHubWestendInboundLaneApi", "FromBridgeHubKusamaInboundLaneApi",
    "FromBridgeHubPolkadotInboundLaneApi", "FromPolkadotBulletinInboundLaneApi", "ToBridgeHubRococoOutboundLaneApi",
    "ToBridgeHubWestendOutboundLaneApi", "ToBridgeHubKusamaOutboundLaneApi", "ToBridgeHubPolkadotOutboundLaneApi",
    "ToPolkadotBulletinOutboundLaneApi", "OutboundQueueApi", "OutboundQueueV2Api", "ControlApi",
    # other chains
    "EthereumRuntimeRPCApi", "ConvertTransactionRuntimeApi", "DebugRuntimeApi", "TxPoolRuntimeApi", "NimbusApi",
    "AuthorFilterAPI", "VrfApi", "OracleApi", "CurrenciesApi", "TokensApi", "EVMRuntimeRPCApi",
    "LoansApi", "PoolsApi", "RewardsApi", "AccountConversionApi", "InvestmentsApi", "OrderBookApi", "DappStakingApi",
)  # fmt: skip
"""Names that many runtimes have; those that metadata names are known besides."""


def api_id(name: str) -> bytes:
    """Return the eight bytes that stand for a runtime API's name."""
    return blake2b(name.encode(), digest_size=8).digest()


def api_names(*metadata: Metadata) -> dict[bytes, str]:
    """Return the names by id: those that are known everywhere, and those that the ``metadata`` has (V15 on)."""
    named: Iterable[str] = (api.name for it in metadata for api in it.apis)
    return {api_id(name): name for name in (*KNOWN_APIS, *named)}
