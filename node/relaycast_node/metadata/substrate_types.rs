// Types that Substrate and Polkadot name and whose values are not classes of pallets here: polkadot-sdk's own paths,
// fields and indices. This is read as text (see rust_syntax.py); it is not compiled.

struct primitive_types::H256([u8; 32]);
struct sp_core::crypto::AccountId32([u8; 32]);
struct polkadot_parachain_primitives::primitives::ParaId(u32);
struct pallet_subscriber::SubscribedKey(H256);
struct sp_arithmetic::fixed_point::FixedU128(u128);
struct sp_weights::weight_v2::Weight { ref_time: Compact<u64>, proof_size: Compact<u64> }
struct sp_weights::RuntimeDbWeight { read: u64, write: u64 }

enum Option<T> { None, Some(T) = 1 }
enum Result<T, E> { Ok(T), Err(E) }

enum sp_runtime::multiaddress::MultiAddress<AccountId, AccountIndex> {
    Id(AccountId), Index(Compact<AccountIndex>), Raw(Vec<u8>), Address32([u8; 32]), Address20([u8; 20]),
}
enum sp_runtime::MultiSignature { Ed25519([u8; 64]), Sr25519([u8; 64]), Ecdsa([u8; 65]) }

// Dispatch
enum sp_runtime::DispatchError {
    Other, CannotLookup, BadOrigin, Module(ModuleError), ConsumerRemaining, NoProviders, TooManyConsumers,
    Token(TokenError), Arithmetic(ArithmeticError), Transactional(TransactionalError), Exhausted, Corruption,
    Unavailable, RootNotAllowed, Trie(TrieError),
}
struct sp_runtime::ModuleError { index: u8, error: [u8; 4] }
enum sp_runtime::TokenError {
    FundsUnavailable, OnlyProvider, BelowMinimum, CannotCreate, UnknownAsset, Frozen, Unsupported, CannotCreateHold,
    NotExpendable, Blocked,
}
enum sp_arithmetic::ArithmeticError { Underflow, Overflow, DivisionByZero }
enum sp_runtime::TransactionalError { LimitReached, NoLayer }
enum sp_runtime::proving_trie::TrieError {
    InvalidStateRoot, IncompleteDatabase, ValueAtIncompleteKey, DecoderError, InvalidHash, DuplicateKey,
    ExtraneousNode, ExtraneousValue, ExtraneousHashReference, InvalidChildReference, ValueMismatch, IncompleteProof,
    RootMismatch, DecodeError,
}
struct frame_support::dispatch::DispatchInfo { weight: Weight, class: DispatchClass, pays_fee: Pays }
struct frame_system::DispatchEventInfo { weight: Weight, class: DispatchClass, pays_fee: Pays }
enum frame_support::dispatch::DispatchClass { Normal, Operational, Mandatory }
enum frame_support::dispatch::Pays { Yes, No }

// Blocks
enum sp_runtime::generic::digest::DigestItem {
    Other(Vec<u8>), Consensus([u8; 4], Vec<u8>) = 4, Seal([u8; 4], Vec<u8>) = 5, PreRuntime([u8; 4], Vec<u8>) = 6,
    RuntimeEnvironmentUpdated = 8,
}
struct sp_runtime::generic::digest::Digest { logs: Vec<DigestItem> }
struct sp_runtime::generic::header::Header {
    parent_hash: H256, number: Compact<u32>, state_root: H256, extrinsics_root: H256, digest: Digest,
}
enum frame_system::Phase { ApplyExtrinsic(u32), Finalization, Initialization }
struct frame_system::EventRecord<E, T> { phase: Phase, event: E, topics: Vec<T> }
struct frame_system::LastRuntimeUpgradeInfo { spec_version: Compact<u32>, spec_name: str }
struct sp_version::RuntimeVersion {
    spec_name: str, impl_name: str, authoring_version: u32, spec_version: u32, impl_version: u32,
    apis: Vec<([u8; 8], u32)>, transaction_version: u32, system_version: u8,
}
enum sp_runtime::ExtrinsicInclusionMode { AllExtrinsics, OnlyInherents }
enum pallet_subscriber::DisableReason { TrieDepthExceeded }
enum pallet_transaction_payment::Releases { V1Ancient, V2 }

// Transactions
struct sp_runtime::generic::unchecked_extrinsic::UncheckedExtrinsic<Address, Call, Signature, Extra>(Vec<u8>);
struct frame_system::extensions::check_non_zero_sender::CheckNonZeroSender;
struct frame_system::extensions::check_spec_version::CheckSpecVersion;
struct frame_system::extensions::check_tx_version::CheckTxVersion;
struct frame_system::extensions::check_genesis::CheckGenesis;
struct frame_system::extensions::check_mortality::CheckMortality(Era);
struct frame_system::extensions::check_nonce::CheckNonce(Compact<u32>);
struct frame_system::extensions::check_weight::CheckWeight;
struct pallet_transaction_payment::ChargeTransactionPayment(Compact<u128>);
struct frame_metadata_hash_extension::CheckMetadataHash { mode: Mode }
enum frame_metadata_hash_extension::Mode { Disabled, Enabled }
enum sp_runtime::transaction_validity::TransactionSource { InBlock, Local, External }
struct sp_runtime::transaction_validity::ValidTransaction {
    priority: u64, requires: Vec<Vec<u8>>, provides: Vec<Vec<u8>>, longevity: u64, propagate: bool,
}
enum sp_runtime::transaction_validity::TransactionValidityError {
    Invalid(InvalidTransaction), Unknown(UnknownTransaction),
}
enum sp_runtime::transaction_validity::InvalidTransaction {
    Call, Payment, Future, Stale, BadProof, AncientBirthBlock, ExhaustsResources, Custom(u8), BadMandatory,
    MandatoryValidation, BadSigner, IndeterminateImplicit, UnknownOrigin,
}
enum sp_runtime::transaction_validity::UnknownTransaction { CannotLookup, NoUnsignedValidator, Custom(u8) }
struct pallet_transaction_payment::types::RuntimeDispatchInfo { weight: Weight, class: DispatchClass, partial_fee: u128 }
struct pallet_transaction_payment::types::FeeDetails { inclusion_fee: Option<InclusionFee>, tip: u128 }
struct pallet_transaction_payment::types::InclusionFee { base_fee: u128, len_fee: u128, adjusted_weight_fee: u128 }
struct sp_core::OpaqueMetadata(Vec<u8>);

// What a parachain block is given of its relay chain
struct polkadot_primitives::PersistedValidationData {
    parent_head: HeadData, relay_parent_number: u32, relay_parent_storage_root: H256, max_pov_size: u32,
}
struct polkadot_parachain_primitives::primitives::HeadData(Vec<u8>);
struct sp_trie::storage_proof::StorageProof { trie_nodes: BTreeSet<Vec<u8>> }
struct cumulus_pallet_parachain_system::parachain_inherent::BasicParachainInherentData {
    validation_data: PersistedValidationData, relay_chain_state: StorageProof, relay_parent_descendants: Vec<Header>,
    collator_peer_id: Option<Vec<u8>>,
}
struct cumulus_pallet_parachain_system::parachain_inherent::InboundMessagesData {
    downward_messages: AbridgedInboundMessagesCollection<InboundDownwardMessage, HashedMessage>,
    horizontal_messages: AbridgedInboundMessagesCollection<(ParaId, InboundHrmpMessage), (ParaId, HashedMessage)>,
}
struct cumulus_pallet_parachain_system::parachain_inherent::AbridgedInboundMessagesCollection<M, H> {
    full_messages: Vec<M>, hashed_messages: Vec<H>,
}
struct polkadot_core_primitives::InboundDownwardMessage { sent_at: u32, msg: Vec<u8> }
struct polkadot_core_primitives::InboundHrmpMessage { sent_at: u32, data: Vec<u8> }
struct cumulus_pallet_parachain_system::parachain_inherent::HashedMessage { sent_at: u32, msg_hash: H256 }
struct relaycast::IncludedHead { para_id: ParaId, head: HeadData }
struct sp_runtime::IdAmount<Id, Balance> { id: Id, amount: Balance }
struct sp_consensus_slots::Slot(u64);
