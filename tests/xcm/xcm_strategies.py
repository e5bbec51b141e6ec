"""What hypothesis draws for XCM: locations of every junction, assets in order, messages with messages inside."""

from hypothesis import strategies as st

from relaycast_xcm import (
    AccountId32,
    AccountIndex64,
    AccountKey20,
    All,
    AllCounted,
    AllOf,
    AllOfCounted,
    Asset,
    BuyExecution,
    ByFork,
    ByGenesis,
    ClearError,
    ClearOrigin,
    ClearTopic,
    Definite,
    DepositAsset,
    DescendOrigin,
    Ethereum,
    GeneralIndex,
    GeneralKey,
    GlobalConsensus,
    Location,
    NetworkName,
    OnlyChild,
    OriginKind,
    PalletInstance,
    Parachain,
    PayFees,
    Plurality,
    Publish,
    QueryResponse,
    RefundSurplus,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Transact,
    TransferAsset,
    Trap,
    UnpaidExecution,
    Weight,
    Wild,
    WildFungibility,
    WithdrawAsset,
    assets,
)
from relaycast_xcm.instructions import AssetsResponse, NullResponse, VersionResponse
from relaycast_xcm.location import (
    AtLeastProportion,
    BodyIndex,
    BodyName,
    BodyVoice,
    Fraction,
    Members,
    Moniker,
    MoreThanProportion,
)

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
u128 = st.integers(0, 2**128 - 1)
hashes = st.binary(min_size=32, max_size=32)
weights = st.builds(Weight, u64, u64)

networks = st.one_of(
    st.sampled_from(NetworkName), st.builds(ByGenesis, hashes), st.builds(ByFork, u64, hashes), st.builds(Ethereum, u64)
)
bodies = st.one_of(
    st.sampled_from(BodyName), st.builds(Moniker, st.binary(min_size=4, max_size=4)), st.builds(BodyIndex, u32)
)
parts = st.one_of(
    st.just(BodyVoice.VOICE),
    st.builds(Members, u32),
    *(st.builds(kind, u32, u32) for kind in (Fraction, AtLeastProportion, MoreThanProportion)),
)
junctions = st.one_of(
    st.builds(Parachain, u32),
    st.builds(AccountId32, st.none() | networks, hashes),
    st.builds(AccountIndex64, st.none() | networks, u64),
    st.builds(AccountKey20, st.none() | networks, st.binary(min_size=20, max_size=20)),
    st.builds(PalletInstance, st.integers(0, 255)),
    st.builds(GeneralIndex, u128),
    st.builds(GeneralKey, st.integers(0, 32), hashes),
    st.just(OnlyChild()),
    st.builds(Plurality, bodies, parts),
    st.builds(GlobalConsensus, networks),
)
interiors = st.lists(junctions, max_size=8).map(tuple)
locations = st.builds(Location, st.integers(0, 255), interiors)

asset = st.builds(Asset.fungible, locations, st.integers(1, 2**128 - 1))
asset_lists = st.lists(asset, max_size=4, unique_by=lambda item: item.id).map(assets)
fungibilities = st.sampled_from(WildFungibility)
wildcards = st.one_of(
    st.just(All()),
    st.builds(AllCounted, u32),
    st.builds(AllOf, locations, fungibilities),
    st.builds(AllOfCounted, locations, fungibilities, u32),
)
filters = st.one_of(st.builds(Definite, asset_lists), st.builds(Wild, wildcards))

publishes = st.builds(Publish, hashes, st.binary(max_size=100), u32)
responses = st.one_of(st.just(NullResponse()), st.builds(AssetsResponse, asset_lists), st.builds(VersionResponse, u32))
flat_instructions = st.one_of(
    publishes,
    st.builds(WithdrawAsset, asset_lists),
    st.builds(QueryResponse, u64, responses, weights, st.none() | locations),
    st.builds(TransferAsset, asset_lists, locations),
    st.builds(Transact, st.sampled_from(OriginKind), st.none() | weights, st.binary(max_size=80)),
    st.builds(DescendOrigin, interiors),
    st.builds(DepositAsset, filters, locations),
    st.builds(BuyExecution, asset, st.none() | weights),
    st.builds(Trap, u64),
    st.builds(SetTopic, hashes),
    st.builds(UnpaidExecution, st.none() | weights, st.none() | locations),
    st.builds(PayFees, asset),
    st.sampled_from((ClearOrigin(), ClearTopic(), ClearError(), RefundSurplus())),
)
flat_messages = st.lists(flat_instructions, max_size=4).map(tuple)
instructions = st.one_of(
    flat_instructions, st.builds(SetErrorHandler, flat_messages), st.builds(SetAppendix, flat_messages)
)
messages = st.lists(instructions, max_size=5).map(tuple)
