"""The relay chain: it takes upward messages, executes them, expires what is old, and seals blocks with real roots.

What stands at the keys that collators always prove is written each block with a node's sizes; the values come from
the seed. Randomness, slots, authorities and extrinsics are modelled; state roots, headers and the heads of message
queues are exact.

A message of ``Publish`` alone is free (``xcm_config.rs``). Any other message pays for its weight first, with the tokens
of its sender's sovereign account; system parachains may ask for execution without payment. What a message leaves in
holding is trapped.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from relaycast_collator.header import (
    BlockBody,
    ClosedBody,
    DigestItem,
    Header,
    authority_of,
    babe_pre_digest,
    ordered_root,
)
from relaycast_collator.upgrades import RelayUpgrades
from relaycast_pallets.asset_traps import AssetTraps
from relaycast_pallets.balances import Balances
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.partial_state import PartialState
from relaycast_pallets.frame.state import State, StateDump
from relaycast_pallets.frame.system import DispatchResult, Event, System
from relaycast_pallets.frame.well_known_keys import (
    ACTIVE_CONFIG,
    CURRENT_BLOCK_RANDOMNESS,
    CURRENT_SLOT,
    ONE_EPOCH_AGO_RANDOMNESS,
    TWO_EPOCHS_AGO_RANDOMNESS,
    para_head,
)
from relaycast_pallets.message_queue import event_of
from relaycast_pallets.messaging.inbound_message import InboundMessage
from relaycast_pallets.messaging.relay_queues import ChannelDump, Dmp, DownwardDump, Hrmp
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken, MessagingState
from relaycast_pallets.xcm import FeesToAuthor, FungibleAdapter
from relaycast_trie import ChildInfo, StateVersion, StorageProof, blake2_256
from relaycast_trie.engine import Engine
from relaycast_trie.plain.partial_trie import StateWitness
from relaycast_trie.scale import encode_bytes, encode_u32, encode_u64
from relaycast_xcm import (
    POLKADOT_WEIGHTS,
    AllowExplicitUnpaidExecutionFrom,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    BarrierChain,
    Everything,
    IsChildSystemParachain,
    OnlyParachains,
    ParachainBroadcastAdapter,
    ParaId,
    PublishWeight,
    TakeWeightCredit,
    TrailingSetTopicAsId,
    Weight,
    WithComputedOrigin,
    XcmExecutor,
    parachain_account,
)
from relaycast_xcm.checkpoint import VERSION, CheckpointRefused, Dump, Hash, Version, refusing
from relaycast_xcm.ump import POLKADOT_LIMITS, Processing, UpwardDump, UpwardLimits, UpwardMessageQueue

MAX_CODE_SIZE = 3 * 1024 * 1024
MAX_HEAD_DATA_SIZE = 20_480
HRMP_MAX_MESSAGE_NUM_PER_CANDIDATE = 10
VALIDATION_UPGRADE_COOLDOWN, VALIDATION_UPGRADE_DELAY = 14_400, 600
MAX_CANDIDATE_DEPTH, ALLOWED_ANCESTRY_LEN = 3, 2
"""Limits of asynchronous backing."""


def host_configuration(upward: UpwardLimits) -> bytes:
    """Return what parachains read of the ``HostConfiguration``: its leading fields, in SCALE.

    The values are Polkadot's (``AbridgedHostConfiguration``), but for the limits of upward messages.
    """
    fields = (
        MAX_CODE_SIZE,
        MAX_HEAD_DATA_SIZE,
        upward.queue_count,
        upward.queue_bytes,
        upward.message_bytes,
        upward.messages_per_candidate,
        HRMP_MAX_MESSAGE_NUM_PER_CANDIDATE,
        VALIDATION_UPGRADE_COOLDOWN,
        VALIDATION_UPGRADE_DELAY,
        MAX_CANDIDATE_DEPTH,
        ALLOWED_ANCESTRY_LEN,
    )
    return b"".join(map(encode_u32, fields))


BARRIER = TrailingSetTopicAsId(
    BarrierChain(
        TakeWeightCredit(),
        AllowPublishFrom(OnlyParachains()),
        WithComputedOrigin(
            BarrierChain(
                AllowTopLevelPaidExecutionFrom(Everything()),
                AllowExplicitUnpaidExecutionFrom(IsChildSystemParachain()),
            )
        ),
    )
)
"""Polkadot's barriers around the one that lets publications in."""

BLOCK_AUTHOR = blake2_256(b"block author")
"""The account that earns fees: one author is modelled for all blocks."""


def relay_executor(system: System, balances: Balances, broadcaster: Broadcaster) -> XcmExecutor:
    """Return what executes messages on a relay chain with these pallets."""
    return XcmExecutor(
        BARRIER,
        broadcast=ParachainBroadcastAdapter(OnlyParachains(), broadcaster),
        weigher=replace(POLKADOT_WEIGHTS, publish=PublishWeight(broadcaster.config.weight("publish"))),
        assets=FungibleAdapter(balances),
        trader=FeesToAuthor(balances, BLOCK_AUTHOR),
        trap=AssetTraps(system),
    )


BLOCK_WEIGHT = Weight(2_000_000_000_000, 5 * 1024 * 1024)
"""A relay chain block: two seconds of execution (picoseconds) and, nominally, 5 MiB of proof."""

FIRST_SLOT = 265_000_000
"""The slot of a modelled genesis before which no real chain began: runtimes take a slot of 0 for none."""

ACTIVE_CONFIG_BYTES = 202
"""The size of a recent ``HostConfiguration``."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """The state that a relay chain starts from; children by name, without their prefix.

    With a ``witness`` that is the state which it shows a part of; ``top`` and ``children`` are what is known.
    """

    top: Mapping[bytes, bytes] = field(default_factory=dict)
    children: Mapping[bytes, Mapping[bytes, bytes]] = field(default_factory=dict)
    state_version: StateVersion = StateVersion.V1
    is_modelled: bool = False
    """Whether the values in it are drawn from a seed, and mean nothing to those who decode them."""

    witness: StateWitness | None = None
    sealed: State | None = None
    """The state itself, in plain tries, where several chains start from it: each takes a copy."""

    def for_many(self) -> "Genesis":
        """Return the same genesis, sealed once for all chains that start from it; a part of a state stays as it is."""
        return self if self.witness is not None else dataclasses.replace(self, sealed=_state_of(self, 1, "plain"))


class Call(Struct, frozen=True):
    """A call for a block: ``run`` makes it and returns what it used of the weight it ``declared``."""

    run: Callable[[], Weight]
    declared: Weight


class RelayBlock(Struct, frozen=True):
    """A sealed block, with what happened in it; ``calls`` says of each call how it ended, in their order."""

    header: Header
    events: tuple[Event, ...] = ()
    messages: tuple[Processing, ...] = ()
    calls: tuple[DispatchResult, ...] = ()

    @property
    def number(self) -> int:
        return self.header.number

    @property
    def state_root(self) -> bytes:
        return self.header.state_root

    @property
    def hash(self) -> bytes:
        return self.header.hash

    def __repr__(self) -> str:
        return f"<RelayBlock #{self.number} state 0x{self.state_root.hex()}, {len(self.events)} events>"


class RelayChainDump(Dump, frozen=True):
    """A relay chain between two blocks; ``headers`` in SCALE, from the oldest block on that can be proven from."""

    version: Version
    genesis_root: Hash
    headers: list[bytes]
    state: StateDump
    heads: list[tuple[ParaId, bytes]]
    """Heads of parachains that the next block holds."""

    upward: UpwardDump
    downward: list[DownwardDump]
    channels: list[ChannelDump]


class RelayChain:
    """A relay chain with the broadcaster pallet, from ``genesis`` on; the last ``window`` blocks can be proven from.

    Blocks are written in state version 1 whichever version the genesis has.
    """

    def __init__(
        self,
        genesis: Genesis | None = None,
        *,
        seed: int = 0,
        broadcaster: BroadcasterConfig = POLKADOT,
        block_weight: Weight = BLOCK_WEIGHT,
        upward_limits: UpwardLimits = POLKADOT_LIMITS,
        window: int = 64,
        trie_engine: Engine = "auto",
    ) -> None:
        genesis = genesis or modelled_genesis(seed)
        self.state = _state_of(genesis, window, trie_engine)
        self.genesis_root = self.state.root
        self._is_configured, self._first_slot = False, 0
        self._needs_configuration = genesis.is_modelled or ACTIVE_CONFIG not in genesis.top
        self.state.migrate(StateVersion.V1)
        self.system = System(self.state, max_block=block_weight)
        self.balances = Balances(self.system)
        self.broadcaster = Broadcaster(self.system, self.balances, config=broadcaster)
        self.upgrades = RelayUpgrades(self.broadcaster)
        self.executor = relay_executor(self.system, self.balances, self.broadcaster)
        self.upward = UpwardMessageQueue(self.executor, limits=upward_limits, service_weight=block_weight)
        self.dmp, self.hrmp = Dmp(self.state), Hrmp(self.state)
        self.heads: dict[ParaId, bytes] = {}
        self.included: dict[ParaId, bytes] = {}
        """Heads that the block under way, or the last one, has written."""

        self.blocks: deque[RelayBlock] = deque(maxlen=window)
        self.body: BlockBody | None = None
        self._seed = blake2_256(b"relay chain" + encode_u64(seed))
        self.blocks.append(RelayBlock(Header(bytes(32), 0, self.genesis_root)))

    @property
    def head(self) -> RelayBlock:
        """The last sealed block."""
        return self.blocks[-1]

    def seal_genesis(self) -> None:
        """Make what was written before block 1 part of the genesis."""
        assert self.head.number == 0, "the genesis is sealed before the first block"
        self.genesis_root = self.state.commit()
        self.blocks[0] = RelayBlock(Header(bytes(32), 0, self.genesis_root))

    def configure(self) -> None:
        """Put what runtimes of parachains read: a host configuration where the genesis has none, and slots of today.

        Slots go on from that of the genesis. Before block 1 all of it is part of the genesis.
        """
        if self._is_configured:
            return
        self._is_configured = True
        if self._needs_configuration:
            drawn = self.state.get(ACTIVE_CONFIG) or bytes(ACTIVE_CONFIG_BYTES)
            told = host_configuration(self.upward.limits)
            self.state.put(ACTIVE_CONFIG, told + drawn[len(told) :])
        if self.head.number == 0:
            held = int.from_bytes(self.state.get(CURRENT_SLOT) or b"", "little")
            self._first_slot = held or FIRST_SLOT
            self.state.put(CURRENT_SLOT, encode_u64(self._first_slot))
            self.seal_genesis()

    def build_block(self, calls: tuple[Call, ...] = ()) -> RelayBlock:
        """Build and seal the next block: included heads, the body, ``calls``, upward messages, then expiry."""
        parent, slot = self.head, self._first_slot + self.head.number + 1
        logs: tuple[DigestItem, ...]
        logs = (babe_pre_digest(authority_index=authority_of(self._seed, slot), slot=slot),)
        with self.state.transaction():
            self.system.initialize(parent.number + 1, parent_hash=parent.hash)
            if self.body is not None:
                self.body.open(parent.number + 1, parent.hash, logs)
        self.upgrades.begin_block(parent.number + 1)
        self._write_consensus(parent.number + 1)
        if self.body is not None:
            self.body.apply()
        dispatched = tuple(self.dispatch(call) for call in calls)
        messages = self.upward.service_with(self.system.meter, tell=self._deposit_outcome)
        self.system.meter.consume(self.broadcaster.on_idle(self.system.meter.remaining()))
        closed = ClosedBody(ordered_root([it.id for it in messages])) if self.body is None else self.body.close()
        extrinsics, logs = closed.extrinsics_root, logs if closed.logs is None else closed.logs
        header = Header(parent.hash, parent.number + 1, self.state.commit(), extrinsics, logs)
        block = RelayBlock(header, tuple(self.system.events), messages, dispatched)
        self.blocks.append(block)
        return block

    def dispatch(self, call: Call) -> DispatchResult:
        """Make a call in the current block; one that is refused weighs what it declared."""
        return self.system.apply(call.run, declared=call.declared)

    def join(self, para_id: ParaId) -> MessagingState:
        """Return the heads and channels that the state has for a parachain that joins: it takes them over.

        What waits for this id in a state from elsewhere is gone with the next block, for the heads cover it.
        """
        found = MessagingState.read(lambda keys: {key: self.state.get(key) for key in keys}, para_id)
        self.dmp.forget_forked(para_id)
        self.hrmp.forget_forked(para_id)
        return found

    def include(self, para_id: ParaId, head: bytes, taken: MessagesTaken | None = None) -> None:
        """Let the next block hold ``head`` as the parachain's; messages that its new blocks have ``taken`` go."""
        self.heads[para_id] = head
        if taken is not None:
            self.dmp.prune(para_id, taken.processed_downward_messages)
            self.hrmp.prune(para_id, taken.hrmp_watermark)

    def receive(self, para_id: ParaId, downward: Sequence[bytes], horizontal: Mapping[ParaId, Sequence[bytes]]) -> int:
        """Queue messages for a parachain with the next block, horizontal ones by sender; return the bytes refused."""
        sent_at = self.head.number + 1
        refused_bytes = self.dmp.queue(para_id, downward, sent_at=sent_at)
        for sender, messages in horizontal.items():
            refused_bytes += self.hrmp.send(sender, para_id, messages, sent_at=sent_at)
        return refused_bytes

    def inbound_messages(
        self, block: RelayBlock, para_id: ParaId
    ) -> tuple[Sequence[InboundMessage], Sequence[InboundMessage]]:
        """Return the downward and the horizontal messages that wait for a parachain as of ``block``."""
        up_to = block.number
        return self.dmp.messages(para_id, up_to=up_to), self.hrmp.messages(para_id, up_to=up_to)

    def fund(self, para_id: ParaId, amount: int) -> Weight:
        """Issue ``amount`` planck to a parachain's sovereign account. A call, for ``build_block``."""
        self.balances.mint_into(parachain_account(para_id), amount)
        return Weight.ZERO

    def offboard(self, para_id: ParaId) -> Weight:
        """Let a parachain go: its head, queues and channels, and all that it published. A call, for ``build_block``."""
        self.upward.drop(para_id)
        self.dmp.remove(para_id)
        self.hrmp.close_channels(para_id)
        self.state.kill(para_head(para_id))
        return self.broadcaster.offboard_publishers([para_id])

    def prove_read(self, block: RelayBlock, keys: list[bytes]) -> StorageProof:
        """Prove keys of the top trie as ``block`` left it."""
        return self.state.prove_read(block.state_root, keys)

    def prove_child_read(self, block: RelayBlock, storage_key: bytes, keys: list[bytes]) -> StorageProof:
        """Prove keys of a child trie as ``block`` left it, with the way there in the top trie."""
        return self.state.prove_child_read(block.state_root, ChildInfo.new_default(storage_key), keys)

    def dump(self) -> RelayChainDump:
        """Return where the chain stands between two blocks; of earlier blocks the headers alone."""
        return RelayChainDump(
            version=VERSION,
            genesis_root=self.genesis_root,
            headers=[block.header.encode() for block in self.blocks],
            state=self.state.dump(),
            heads=list(self.heads.items()),
            upward=self.upward.dump(),
            downward=self.dmp.dump(),
            channels=self.hrmp.dump(),
        )

    def load(self, dump: RelayChainDump) -> None:
        """Stand where another chain stood that was made like this one; raises ``CheckpointRefused``.

        It knows the headers of earlier blocks, not what happened in them. A chain that refuses can no longer be used.
        """
        with refusing("the relay chain"):
            self.state.load(dump.state)
            headers = [Header.decode(header) for header in dump.headers]
            self._check_headers(headers)
            self.upward.load(dump.upward)
            self.dmp.load(dump.downward)
            self.hrmp.load(dump.channels)
        self.blocks.clear()
        self.blocks.extend(map(RelayBlock, headers))
        self.heads = dict(dump.heads)
        self.genesis_root = dump.genesis_root
        self.upgrades.load(self.head.number)
        self.system.events.take()

    def _check_headers(self, headers: list[Header]) -> None:
        """Raise ``CheckpointRefused`` unless each follows on the one before, and all can be proven from."""
        for parent, header in pairwise(headers):
            if header.parent_hash != parent.hash or header.number != parent.number + 1:
                raise CheckpointRefused(f"block {header.number} does not follow on block {parent.number}")
        if not headers or headers[-1].state_root != self.state.root:
            raise CheckpointRefused("its last header has another state root than its state")
        for header in headers:
            if not self.state.keeps(header.state_root):
                raise CheckpointRefused(f"the state of block {header.number} is missing")

    def _deposit_outcome(self, processing: Processing) -> None:
        self.system.deposit_event(event_of(processing))

    def _write_consensus(self, number: int) -> None:
        if self.body is None or not self.body.writes_consensus:
            self.state.put(CURRENT_SLOT, encode_u64(self._first_slot + number))
            self.state.put(CURRENT_BLOCK_RANDOMNESS, b"\x01" + blake2_256(self._seed + encode_u64(number)))
        self.included, self.heads = self.heads, {}
        for para_id, head in self.included.items():
            self.state.put(para_head(para_id), encode_bytes(head))

    def __repr__(self) -> str:
        return f"<RelayChain at #{self.head.number}, {len(self.state.children())} publishers>"


def _state_of(genesis: Genesis, window: int, engine: Engine) -> State:
    """Return the state of a genesis; one with gaps takes the plain engine."""
    if genesis.witness is not None:
        return PartialState(genesis.witness, window=window)
    if genesis.sealed is not None:
        return genesis.sealed.begun_again(window=window, engine=engine)
    children = {ChildInfo.new_default(name): pairs for name, pairs in genesis.children.items()}
    return State(genesis.top, children, state_version=genesis.state_version, window=window, engine=engine)


def modelled_genesis(seed: int, *, entries: int = 512) -> Genesis:
    """Return a genesis with the keys that collators always prove and ``entries`` others, for want of a chain spec.

    ``entries`` gives the top trie some of the depth that a real chain's has.
    """
    base = blake2_256(b"genesis" + encode_u64(seed))
    top = {blake2_256(base + encode_u64(index)): blake2_256(encode_u64(index) + base) * 2 for index in range(entries)}
    top[ONE_EPOCH_AGO_RANDOMNESS] = blake2_256(base + b"1")
    top[TWO_EPOCHS_AGO_RANDOMNESS] = blake2_256(base + b"2")
    top[CURRENT_SLOT] = encode_u64(0)
    top[ACTIVE_CONFIG] = (blake2_256(base + b"c") * 7)[:ACTIVE_CONFIG_BYTES]
    return Genesis(top, is_modelled=True)
