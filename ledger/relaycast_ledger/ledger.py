"""The ledger: it listens to chains and keeps a record of each subscriber block, deliveries, and invariants.

Law: nothing that a chain does depends on it. Chains without a ledger build the same blocks; a ledger that only
``replay``s for some blocks and then ``on_fact``s goes on as one that heard them all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial

from msgspec import field
from msgspec.structs import replace

from relaycast_collator.chains import ChainSimulator
from relaycast_collator.facts import BlockBuilt, BlockPanicked, Fact, WasmBlockBuilt, WasmBlockRefused
from relaycast_collator.wasm_parachain import ExtrinsicLeftOut, WasmBlock
from relaycast_ledger.accounting import RELAY, BlockAccount, account_for
from relaycast_ledger.block_checks import (
    Check,
    account_checks,
    agreement_checks,
    deletion_checks,
    delivery_checks,
    pass_checks,
    wasm_block_checks,
)
from relaycast_ledger.deliveries import Deliveries, DeliveriesDump, Place
from relaycast_ledger.outcome import BLOCKS_BEHIND
from relaycast_ledger.pov import PovSize, pov_size, wasm_pov_size
from relaycast_ledger.proof_picture import ProofPicture, picture_tries
from relaycast_ledger.records import (
    BlockRecord,
    Delivery,
    Invariants,
    ReadTotals,
    ToldDeletion,
    Uncharged,
    WasmBlockRecord,
)
from relaycast_pallets.parachain_system.inbound_messages import channel_keys
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_pallets.subscriber.events import CallbackOverweight, PublisherDisabled
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_trie import RootMismatch, blake2_256
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import VERSION, Count, Dump, Version

DISPATCH_FAILED = b"\x00\x01"
"""What a result begins with where the call of an extrinsic failed: ``ApplyExtrinsicResult`` in SCALE."""


FROM_RELAY = frozenset(it.value for it in RELAY)
"""The names of what comes out of the relay proof."""


class Accounts(Enum):
    """How closely a ledger says what the bytes of a proof are for."""

    NONE = "none"
    BY_PUBLISHER = "by publisher"
    BY_KEY = "by key"
    """By publisher and by subscribed key."""

    BY_NODE = "by node"
    """By key, and of each node what it is for."""


class LedgerDump(Dump, frozen=True):
    """What records and checks of later blocks follow from; not what was recorded and found before."""

    version: Version
    pictures: list[tuple[ParaId, Count]]
    """How many blocks of a subscriber still come with a picture."""

    deliveries: DeliveriesDump
    first_deliveries: list[tuple[ParaId, bool]] = field(default_factory=list)
    """Subscribers whose first delivery began, and whether it is over."""


class Ledger:
    """Listens to ``chains`` from now on.

    ``pictures`` is the number of blocks with callbacks that still come with a picture, by subscriber; pictures need
    accounts.
    """

    def __init__(
        self,
        chains: ChainSimulator,
        *,
        accounts: Accounts = Accounts.NONE,
        pictures: Mapping[ParaId, int] | None = None,
    ) -> None:
        self.chains = chains
        self.accounts = accounts
        self.pictures: Counter[ParaId] = Counter(pictures or {})
        self.compresses = False
        """Whether every block's PoV is compressed, not only those that may not fit otherwise."""

        self.warm_up: int | None = 0
        """Relay blocks that are marked as warm-up; ``None``: those up to the end of each subscriber's first delivery.

        That ends with the first block that brings no key for the first time.
        """

        self.invariants = Invariants()
        self.deliveries = Deliveries()
        self._is_steady: dict[ParaId, bool] = {}
        """Whether the first delivery is over, for each subscriber to which anything was delivered."""

        self._records: list[BlockRecord] = []
        self._wasm_block_records: list[WasmBlockRecord] = []
        self.listen()

    def listen(self) -> None:
        """Hear every fact from now on, before those who listen later."""
        self.chains.listeners.append(self.on_fact)

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """``replay`` for a while in place of hearing: no records, no checks."""
        listeners = self.chains.listeners
        place = listeners.index(self.on_fact)
        listeners[place] = self.replay
        try:
            yield
        finally:
            listeners[place] = self.on_fact

    def step(self) -> list[BlockRecord]:
        """Let one tick pass and return the records of its subscriber blocks, and of those that panicked."""
        self._records.clear()
        self._wasm_block_records.clear()
        self.chains.step()
        return self.take_records()

    def take_records(self) -> list[BlockRecord]:
        """Return the records since they were last taken, in the order of their blocks."""
        records, self._records = self._records, []
        return records

    def take_wasm_block_records(self) -> list[WasmBlockRecord]:
        """Return the records of Wasm parachains' blocks since they were last taken, in the order of their blocks."""
        records, self._wasm_block_records = self._wasm_block_records, []
        return records

    def on_fact(self, fact: Fact) -> None:
        """Note a fact: record and check blocks."""
        match fact:
            case BlockBuilt():
                self._note_built(fact)
            case BlockPanicked():
                self._check(fact, [Check("an honest block is valid", not fact.honest, fact.reason)])
                self._records.append(self._record_panicked(fact))
            case WasmBlockBuilt() | WasmBlockRefused():
                self._note_wasm_block(fact)
            case _:
                self.deliveries.on_fact(fact)

    def replay(self, fact: Fact) -> None:
        """Note of a fact only what records and checks of later blocks follow from."""
        if isinstance(fact, BlockBuilt):
            self._is_pictured(fact)
            self._begin(fact)
            deliveries = [self.deliveries.delivered(fact.para_id, update, fact.tick) for update in fact.block.updates]
            if fact.subscribes:
                self._follow_first_delivery(fact.para_id, deliveries)
            self._lost(fact)
        elif not isinstance(fact, BlockPanicked):
            self.deliveries.on_fact(fact)

    def dump(self) -> LedgerDump:
        """Return what a ledger needs that goes on from here, as data."""
        pictures = [(subscriber, left) for subscriber, left in sorted(self.pictures.items()) if left]
        return LedgerDump(VERSION, pictures, self.deliveries.dump(), sorted(self._is_steady.items()))

    def load(self, dump: LedgerDump) -> None:
        """Go on where another ledger was put away; raises ``CheckpointRefused``. Accounts are kept as before."""
        self.deliveries.load(dump.deliveries)
        self.pictures = Counter(dict(dump.pictures))
        self._is_steady = dict(dump.first_deliveries)

    def _note_built(self, fact: BlockBuilt) -> None:
        block, parachain = fact.block, self.chains.parachains[fact.para_id]
        self._begin(fact)
        repeated = self.deliveries.repeated(fact.para_id, block.outcome.result, block.updates)
        if fact.subscribes:
            record = self._record_built(fact)
            self._records.append(record)
            self._check(fact, account_checks(record, honest=fact.honest))
        if fact.honest:
            self._check(fact, agreement_checks(fact.collation, block))
        subscriber = parachain.subscriber
        self._check(fact, pass_checks(subscriber, block))
        self._check(fact, delivery_checks(parachain, block, repeated, self._lost(fact)))
        if subscriber.policies.deletion.notifies:
            self._check(fact, deletion_checks(block, self._still_published(fact)))

    def _note_wasm_block(self, fact: WasmBlockBuilt | WasmBlockRefused) -> None:
        parachain = self.chains.wasm_parachains[fact.para_id]
        warm_up = fact.tick <= (self.warm_up or 0)
        record = wasm_block_record(
            fact, spec_name=parachain.spec_name, spec_version=parachain.spec_version, warm_up=warm_up
        )
        self._wasm_block_records.append(record)
        if isinstance(fact, WasmBlockBuilt):
            for invariant, holds, seen in wasm_block_checks(fact):
                self.invariants.check(invariant, holds, fact.tick, fact.para_id, seen=seen)

    def _record(self, fact: BlockBuilt | BlockPanicked, number: int, result: ProofProcessingResult) -> BlockRecord:
        """Return what is recorded of any block: the inherent as it was given, and what the pass made of it."""
        block = fact.block if isinstance(fact, BlockBuilt) else fact.collation
        inherent = block.inherent
        proof_bytes, reads = inherent.proof_bytes, result.read_totals
        return BlockRecord(
            tick=fact.tick,
            para_id=fact.para_id,
            number=number,
            relay_parent=fact.relay_parent.number,
            collected_bytes=fact.collation.collected.proof_bytes,
            proof_bytes=proof_bytes,
            proof_nodes=len(inherent.relay_chain_state),
            static_bytes=proof_bytes - sum([it.node_bytes for source, it in reads.items() if source in FROM_RELAY]),
            own_bytes=0,
            reads={source: ReadTotals(*total) for source, total in reads.items()},
            budget_bytes=self._budget_bytes(fact),
            waiting_bytes=fact.inbound.waiting_bytes,
            refused_bytes=fact.inbound.refused_bytes,
            consumed=result.consumed,
            complete=result.is_complete,
            deliveries=(),
            cursor=result.cursor,
            warm_up=self._is_warm_up(fact),
        )

    def _record_built(self, fact: BlockBuilt) -> BlockRecord:
        block, result = fact.block, fact.block.outcome.result
        account, picture = self._account(fact)
        deliveries = tuple([self.deliveries.delivered(fact.para_id, update, fact.tick) for update in block.updates])
        self._follow_first_delivery(fact.para_id, deliveries)
        owed, behind = self._owed(fact)
        return replace(
            self._record(fact, block.header.number, result),
            own_bytes=block.own_proof.proof_bytes,
            message_bytes=fact.inbound.taken_bytes + fact.inbound.hashed_bytes,
            hashed_bytes=fact.inbound.hashed_bytes,
            deliveries=deliveries,
            disabled=tuple([event.publisher for event in block.events if isinstance(event, PublisherDisabled)]),
            uncharged=tuple(Uncharged(it.name, it.excess_bytes) for it in result.oversize),
            account=account,
            picture=picture,
            pov=self._pov(fact),
            callback_weight=self.chains.parachains[fact.para_id].subscriber.delivered.weight,
            ended_by_callbacks=result.is_stopped_by_callbacks,
            overweight_callbacks=sum([isinstance(event, CallbackOverweight) for event in block.events]),
            deletions=tuple(ToldDeletion(publisher, key, fact.tick) for publisher, key in block.deletions),
            owed=owed,
            behind=behind,
        )

    def _record_panicked(self, fact: BlockPanicked) -> BlockRecord:
        inherent, result = fact.collation.inherent, fact.collation.pruning
        account = self._account_for(fact, inherent, result)
        return replace(self._record(fact, fact.head.number, result), panic=fact.reason, account=account)

    def _follow_first_delivery(self, reader: ParaId, deliveries: Sequence[Delivery]) -> None:
        """Note that the first delivery began, or that it is over."""
        if deliveries or reader in self._is_steady:
            brings_first = any(it.is_first for it in deliveries)
            self._is_steady[reader] = self._is_steady.get(reader, False) or not brings_first

    def _is_warm_up(self, fact: BlockBuilt | BlockPanicked) -> bool:
        """Return whether a block is part of the warm-up, once its deliveries are noted."""
        return not self._is_steady.get(fact.para_id, False) if self.warm_up is None else fact.tick <= self.warm_up

    def _pov(self, fact: BlockBuilt) -> PovSize:
        """Return what the whole block carries, and the time that it takes to compute."""
        parachain, result = self.chains.parachains[fact.para_id], fact.block.outcome.result
        callbacks = parachain.subscriber.delivered.weight
        return pov_size(
            fact.block,
            own_root=fact.parent.state_root,
            ref_time=result.consumed.ref_time + callbacks.ref_time + parachain.system.meter.consumed.ref_time,
            callback_bytes=callbacks.proof_size,
            compresses=self.compresses,
        )

    def _account(self, fact: BlockBuilt) -> tuple[BlockAccount | None, ProofPicture | None]:
        """Return the account of a block and its picture, where either is kept."""
        inherent, result = fact.block.inherent, fact.block.outcome.result
        causes: dict[bytes, str] | None = {} if self._is_pictured(fact) else None
        account = self._account_for(fact, inherent, result, causes)
        if account is None or causes is None:
            return account, None
        system, root = self.chains.parachains[fact.para_id].parachain_system, fact.relay_parent.state_root
        read = TrackedProof.collected(fact.collation.collected, root).read_static
        static_keys = (*system.static_keys(), *channel_keys(read, fact.para_id))
        return account, ProofPicture(
            tick=fact.tick,
            para_id=fact.para_id,
            relay_parent=fact.relay_parent.number,
            complete=result.is_complete,
            proof_bytes=inherent.proof_bytes,
            static_bytes=account.static.node_bytes,
            tries=picture_tries(result, account, causes, root, static_keys, fact.collation.collected),
        )

    def _account_for(
        self,
        fact: BlockBuilt | BlockPanicked,
        inherent: ParachainInherentData,
        result: ProofProcessingResult,
        causes: dict[bytes, str] | None = None,
    ) -> BlockAccount | None:
        if self.accounts is Accounts.NONE or not result.plan.views:
            return None
        updates = fact.block.updates if isinstance(fact, BlockBuilt) else ()
        return account_for(
            result,
            relay_root=inherent.validation_data.relay_parent_storage_root,
            proof=inherent.relay_chain_state,
            collected=fact.collation.collected,
            subscriber=self.chains.parachains[fact.para_id].subscriber,
            callbacks=Counter(publisher for publisher, _, _ in updates),
            by_key=self.accounts in {Accounts.BY_KEY, Accounts.BY_NODE},
            by_node=self.accounts is Accounts.BY_NODE,
            causes=causes,
        )

    def _is_pictured(self, fact: BlockBuilt) -> bool:
        """Return whether a block comes with a picture, and count it."""
        is_pictured = bool(fact.block.updates) and self.pictures[fact.para_id] > 0
        self.pictures[fact.para_id] -= is_pictured
        return is_pictured

    def _budget_bytes(self, fact: BlockBuilt | BlockPanicked) -> int:
        if isinstance(fact, BlockBuilt):
            return fact.block.outcome.abridged.pubsub_bytes
        _, abridged = self.chains.parachains[fact.para_id].parachain_system.meter(fact.collation.inherent)
        return abridged.pubsub_bytes

    def _begin(self, fact: BlockBuilt) -> None:
        self.deliveries.begin(fact.para_id, fact.block.outcome.result, fact.relay_parent.number)

    def _owed(self, fact: BlockBuilt) -> tuple[bool, bool]:
        """Return whether the block leaves a key without its current value, and whether one is far behind."""
        result, number = fact.block.outcome.result, fact.relay_parent.number
        if result.is_complete:
            return False, False
        entries = self.chains.relay_chain.broadcaster.storage.entry
        owed = partial(self.deliveries.owed, fact.para_id, result, number, entries)
        return any(owed(since=number)), any(owed(since=number - BLOCKS_BEHIND - 1))

    def _lost(self, fact: BlockBuilt) -> list[Place]:
        result, entries = fact.block.outcome.result, self.chains.relay_chain.broadcaster.storage.entry
        if not result.is_complete:
            return []
        return list(self.deliveries.lost(fact.para_id, result, fact.relay_parent.number, entries))

    def _still_published(self, fact: BlockBuilt) -> list[Place]:
        """Return keys told as deleted that both the relay parent and the relay chain's newest block hold."""
        entries = self.chains.relay_chain.broadcaster.storage.entry
        found = ((place, entries(*place)) for place in fact.block.deletions)
        number = fact.relay_parent.number
        return [place for place, entry in found if entry is not None and entry.when_inserted <= number]

    def _check(self, fact: BlockBuilt | BlockPanicked, checks: Iterable[Check]) -> None:
        for invariant, holds, seen in checks:
            self.invariants.check(invariant, holds, fact.tick, fact.para_id, seen=seen)

    def __repr__(self) -> str:
        return f"<Ledger of {self.chains!r}, {self.invariants!r}>"


def wasm_block_record(
    fact: WasmBlockBuilt | WasmBlockRefused, *, spec_name: str, spec_version: int, warm_up: bool = False
) -> WasmBlockRecord:
    """Return the record of a Wasm parachain's block, which its code in this version built or refused."""
    record = WasmBlockRecord(
        tick=fact.tick,
        para_id=fact.para_id,
        number=fact.head.number if isinstance(fact, WasmBlockRefused) else fact.block.header.number,
        relay_parent=fact.relay_parent.number,
        spec_name=spec_name,
        spec_version=spec_version,
        warm_up=warm_up,
    )
    if isinstance(fact, WasmBlockRefused):
        return replace(record, refusal=fact.reason, log=fact.log)
    block = fact.block
    return replace(
        record,
        extrinsics=len(block.extrinsics),
        failed_extrinsics=sum(result.startswith(DISPATCH_FAILED) for result in block.results),
        left_out=len(block.left_out),
        panics=tuple(_panic(it) for it in block.left_out if it.panicked),
        extrinsic_bytes=sum(map(len, block.extrinsics)),
        relay_proof_bytes=block.relay_proof.proof_bytes,
        carried_relay_bytes=_carried_relay_bytes(block),
        own_proof_bytes=block.own_proof.proof_bytes,
        upward_messages=len(block.upward_messages),
        shares=block.shares,
        pov=_pov(fact),
        log=block.log,
    )


def _panic(left_out: ExtrinsicLeftOut) -> str:
    return f"extrinsic 0x{blake2_256(left_out.extrinsic).hex()}: {left_out.reason}"


def _carried_relay_bytes(block: WasmBlock) -> int:
    """Return how many bytes of the relay proof's nodes stand in the extrinsics."""
    carried = sum(len(node) for node in block.relay_proof.nodes if any(node in it for it in block.extrinsics))
    return min(carried, sum(map(len, block.extrinsics)))


def _pov(fact: WasmBlockBuilt) -> PovSize | None:
    try:
        return wasm_pov_size(fact.block, own_root=fact.parent.state_root, max_pov_bytes=fact.max_pov_size)
    except RootMismatch:
        return None
