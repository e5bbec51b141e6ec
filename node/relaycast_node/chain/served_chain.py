"""One chain behind the RPC: its blocks, the states that they left, its pool, and who listens.

Law: a block is noted on the best one. ``move`` makes another kept block the best, and what left the best branch stays
readable. What was sealed never changes: a state is read by bisection among the changes of blocks, and what can be
proven is what the chain itself keeps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from relaycast_collator.header import Header
from relaycast_node.chain.block_tree import BlockTree, Move
from relaycast_node.chain.code import CODE, BlockContents, BlockState, ChainCode, CodeVersion
from relaycast_node.chain.exceptions import UnknownBlock
from relaycast_node.chain.served_block import Changes, ServedBlock
from relaycast_node.chain.served_chain_dump import ServedChainDump
from relaycast_node.chain.signal import Signal
from relaycast_node.chain.versions import ForkedState, PastState, TrieVersions
from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_node.extrinsic.pool_errors import AlreadyImported, BadExtrinsicFormat, TemporarilyBanned
from relaycast_node.journal.entries import RemoveEntry, SubmitEntry
from relaycast_node.journal.input_log import InputLog
from relaycast_pallets.frame.state import State, StateDiscarded
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.exceptions import MissingNode
from relaycast_trie.node_codec import MAX_PARTIAL_NIBBLES
from relaycast_xcm.primitives import ParaId

PROVABLE_BLOCKS = 256
"""States that can be proven from, the newest; nodes that are no archives keep as many."""

KEPT_BLOCKS = 4_096
"""Blocks whose bodies and states are kept unless a user says otherwise, the newest."""


LONGEST_KEY = MAX_PARTIAL_NIBBLES // 2
"""Bytes of a key: a node of a trie states at most 65,535 nibbles."""


@dataclass(frozen=True, slots=True)
class HeadMove:
    """The best block became ``block`` without a new one; ``changes`` lead from the former best state to that one's."""

    block: ServedBlock
    changes: Changes
    is_rewound: bool = False
    """Whether finalized blocks went: nothing that was told before holds."""


@dataclass(frozen=True, slots=True)
class Finality:
    """A block that is final now, and the blocks that can no longer be."""

    block: ServedBlock
    pruned: tuple[bytes, ...] = ()


class ServedChain:
    """A chain from its ``genesis`` header on, run by ``code``; ``name`` is what clients call it.

    Its blocks are filled with ``contents``, which take the pool's ready extrinsics from now on.
    """

    def __init__(
        self,
        name: str,
        genesis: Header,
        state: State,
        code: ChainCode,
        contents: BlockContents,
        *,
        para_id: ParaId | None = None,
        properties: Mapping[str, object] | None = None,
        finality_lag: int = 2,
        kept_blocks: int | None = KEPT_BLOCKS,
    ) -> None:
        self.name = name
        self.para_id = para_id
        self.properties: dict[str, object] = dict(properties or {})
        self.finality_lag = finality_lag
        self.kept_blocks = kept_blocks
        """Blocks to keep, the newest; ``None`` for all."""

        self.most_final: Callable[[], int] | None = None
        """Gives the highest number that may be final, where another chain says that."""

        self.log = InputLog()
        """Notes each extrinsic that comes or is removed."""

        self.code = code
        self.genesis_hash = genesis.hash
        self.new_heads: Signal[ServedBlock] = Signal()
        """Blocks that were built on the best one, and are the best now."""

        self.moved_heads: Signal[HeadMove] = Signal()
        self.finalized_heads: Signal[Finality] = Signal()
        self.submitted: Signal[bytes] = Signal()
        self._state = state
        self._begin(BlockTree(ServedBlock(genesis, self.genesis_hash)))
        self._contents = contents
        code.follow(self)
        self.pool = TransactionPool(code.view(self.newest()), clock=lambda: self.log.now)
        contents.ready = self.pool.pending

    def _begin(self, tree: BlockTree) -> None:
        """Let the state that the chain holds be that of the only block."""
        self._tree, state = tree, self._state
        below = {info.storage_key: state.child(info) for info in state.children()}
        self._top = TrieVersions(state.top.values, state.top.gaps)
        self._children = {name: TrieVersions(held.values, held.gaps) for name, held in below.items()}

    def dump(self) -> ServedChainDump:
        """Return the best block and the pool's bans; ``ValueError`` while a transaction waits."""
        if self.pool.pending() or self.pool.futures():
            raise ValueError("transactions wait for a block")
        return ServedChainDump(self.best.header.encode(), list(self.best.extrinsics), list(self.pool.bans.items()))

    def load(self, dump: ServedChainDump) -> None:
        """Begin with a block that was the best one, whose state the chain holds already: it is final."""
        header = Header.decode(dump.header)
        self._begin(BlockTree(self._tree.genesis, ServedBlock(header, header.hash, tuple(dump.extrinsics))))
        self.code.follow(self)
        self.pool.replace((), self.code.view(self.newest()), bans=dict(dump.bans))

    @property
    def oldest_number(self) -> int:
        """Number of the oldest block whose state is kept."""
        return self._tree.first

    @property
    def best(self) -> ServedBlock:
        """The block that the next one is built on."""
        return self._tree.best

    @property
    def finalized(self) -> ServedBlock:
        """The newest block that stays for ever."""
        return self._tree.finalized

    @property
    def listener_failures(self) -> int:
        """The number of times that a listener failed."""
        signals = (self.new_heads, self.moved_heads, self.finalized_heads, self.submitted)
        return sum(it.failures for it in signals) + self.pool.listener_failures

    @property
    def contents(self) -> BlockContents:
        """What fills the blocks."""
        return self._contents

    def block(self, block_hash: bytes) -> ServedBlock | None:
        return self._tree.get(block_hash)

    def hash_of(self, number: int) -> bytes | None:
        """Return the hash of the block with this number on the best branch."""
        return self._tree.hash_of(number)

    def hashes_at(self, number: int) -> list[bytes]:
        """Return the hashes of all blocks with this number, the best branch's first."""
        return self._tree.hashes_at(number)

    def may_be_best(self, block: ServedBlock) -> bool:
        """Return whether ``block`` is the newest finalized block or descends from it."""
        return self._tree.may_be_best(block)

    def keeps(self, block_hash: bytes, *, finalized: int) -> bool:
        """Return whether a block is kept, and the state of the block number ``finalized`` on the way to it."""
        return self._tree.get(block_hash) is not None and finalized >= self._tree.first

    def state_at(self, block_hash: bytes) -> PastState:
        """Return the state after a block; raises ``UnknownBlock``, and ``StateDiscarded`` for one before those kept."""
        block = self._known(block_hash)
        above = self._tree.above_branch(block)
        number = block.number - len(above)
        if number < self._tree.first:
            raise StateDiscarded(block.header.state_root)
        state = PastState(self._top, self._children, number)
        return ForkedState.of(state, [(it.changes, it.child_changes) for it in above]) if above else state

    def newest(self) -> BlockState:
        """Return the newest block with its state."""
        return self.state_of(self.best.hash)

    def state_of(self, block_hash: bytes) -> BlockState:
        """Return a block with its state; raises as ``state_at``."""
        return BlockState(self._known(block_hash).header, block_hash, self.state_at(block_hash))

    def prove(self, block_hash: bytes, keys: Iterable[bytes]) -> list[bytes]:
        """Return the nodes that prove keys of the top trie after a block.

        Raises ``UnknownBlock``, and ``StateDiscarded`` for a block older than ``PROVABLE_BLOCKS``.
        """
        root = self._known(block_hash).header.state_root
        return list(self._state.prove_read(root, keys))

    def prove_child(self, block_hash: bytes, storage_key: bytes, keys: Iterable[bytes]) -> list[bytes]:
        """Return the nodes that prove keys of a child trie after a block, and the way there; raises as ``prove``."""
        root = self._known(block_hash).header.state_root
        return list(self._state.prove_child_read(root, ChildInfo(storage_key), keys))

    def submit(self, data: bytes) -> bytes:
        """Give an extrinsic to the pool and return its hash; raises ``PoolError``.

        ``MissingNode`` where the state does not show the account that signs it.
        """
        take_back = self.log.note(SubmitEntry(self.number_in_entries, data, self.best.hash))
        try:
            found = self.pool.submit(data)
        except (BadExtrinsicFormat, AlreadyImported, TemporarilyBanned, MissingNode):  # others are banned, or drop some
            take_back()
            raise
        self.submitted.emit(found)
        return found

    def remove(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Remove extrinsics from the pool and ban them for a while; return the hashes of all that left."""
        self.log.note(RemoveEntry(self.number_in_entries, list(hashes)))
        return self.pool.remove(hashes)

    @property
    def number_in_entries(self) -> int | None:
        """How entries of a journal name this chain."""
        return None if self.para_id is None else int(self.para_id)

    def call(self, method: str, data: bytes, block_hash: bytes) -> bytes:
        """Return what a method of the chain's code answers at a block; raises ``ChainRefusal``."""
        return self.code.call(method, data, self.state_of(block_hash))

    def version(self, block_hash: bytes) -> CodeVersion:
        """Return what the chain's code says of itself after a block; raises ``ChainRefusal``."""
        return self.code.version(self.state_of(block_hash))

    def metadata(self, block_hash: bytes) -> bytes:
        """Return the metadata of the chain's code after a block; raises ``ChainRefusal``."""
        return self.code.metadata(self.state_of(block_hash))

    def dry_run(self, data: bytes, block_hash: bytes) -> bytes:
        """Return the ``ApplyExtrinsicResult`` of an extrinsic after a block; raises ``ChainRefusal``."""
        return self.code.dry_run(data, self.state_of(block_hash))

    def check_storage(self, values: Mapping[bytes, bytes | None], *, child: bytes | None = None) -> None:
        """Raise ``ValueError`` for entries that no trie can hold, and for values that the chain's code cannot read.

        ``child`` is the bare name of a child trie.
        """
        if child is not None and not 0 < len(child) <= LONGEST_KEY - len(CHILD_STORAGE_PREFIX):
            most = LONGEST_KEY - len(CHILD_STORAGE_PREFIX)
            raise ValueError(f"the name of a child trie has 1 to {most:,} bytes, got {len(child):,}")
        for key, value in values.items():
            if len(key) > LONGEST_KEY:
                raise ValueError(f"a key has at most {LONGEST_KEY:,} bytes, got {len(key):,}")
            if child is None:
                self.code.check_value(key, value)

    def set_storage(self, values: Mapping[bytes, bytes | None], *, child: bytes | None = None) -> None:
        """Write values into storage: the next block seals them; ``None`` removes a key.

        ``child`` is the bare name of a child trie. ``ValueError`` for a key of the top trie that names a child trie,
        and for code that is none; ``MissingNode`` beside what a state with gaps lacks.
        """
        linked = [key for key in values if child is None and key.startswith(CHILD_STORAGE_PREFIX)]
        if linked:
            raise ValueError(f"0x{linked[0].hex()} names a child trie: its root is written when the state is sealed")
        storage = self._state if child is None else self._state.child(ChildInfo.new_default(child))
        with self._state.transaction():
            for key, value in values.items():
                if value is None:
                    storage.kill(key)
                else:
                    storage.put(key, value)
            if child is None and CODE in values:
                self.code.take_over(values[CODE])

    def note(self, header: Header) -> ServedBlock:
        """Record the block that the chain has just sealed, and notify the listeners.

        ``finalize`` follows when the tick is complete.
        """
        block_hash = header.hash
        changes, child_changes = self._sealed_changes()
        known = self._tree.get(block_hash)
        extrinsics = tuple(self._contents.extrinsics)
        block = known or ServedBlock(header, block_hash, extrinsics, changes, child_changes)
        self._tree.add(block)
        self._note_changes(block)
        self.code.follow(self)
        self.pool.prune(block.extrinsics, self.code.view(self.newest()))
        self.pool.remove(map(extrinsic_hash, self._contents.invalid))
        if known is None:
            self.new_heads.emit(block)
        else:
            self.moved_heads.emit(HeadMove(block, block.changes))
        return block

    def move(self, block_hash: bytes) -> Move:
        """Make a kept block the best, whose state the chain holds already; the pool and those who listen follow.

        ``UnknownBlock`` for a block that is not kept.
        """
        target = self._known(block_hash)
        assert self._tree.may_be_best(target), "finalized blocks stay"
        moved, changes = self._move(target)
        for block in reversed(moved.retracted):
            self.pool.retract(block.hash, block.extrinsics, self.code.view(self.newest()))
        for block in moved.enacted:
            self.pool.prune(block.extrinsics, self.code.view(self.state_of(block.hash)))
        if moved.retracted or moved.enacted:
            self.moved_heads.emit(HeadMove(target, changes))
        return moved

    def rewind(self, block_hash: bytes, finalized: int, waiting: Iterable[bytes]) -> None:
        """Make a kept block the best, as ``move`` does, and the block number ``finalized`` on its branch the final one.

        The pool holds the extrinsics ``waiting`` and no others. ``UnknownBlock`` for a block that is not kept.
        """
        _, changes = self._stand_at(block_hash, finalized, waiting, {})
        self.moved_heads.emit(HeadMove(self.best, changes, is_rewound=True))

    def take_back(
        self, block_hash: bytes, finalized: int, waiting: Iterable[bytes], bans: Mapping[bytes, float]
    ) -> None:
        """Restore the state at a kept block, without any later input; listeners are notified of a move.

        As ``rewind``, and ``bans`` are those of the pool.
        """
        is_rewound = self.finalized.number != finalized
        move, changes = self._stand_at(block_hash, finalized, waiting, bans)
        if move.retracted or move.enacted or is_rewound:
            self.moved_heads.emit(HeadMove(self.best, changes, is_rewound=is_rewound))

    def _stand_at(
        self, block_hash: bytes, finalized: int, waiting: Iterable[bytes], bans: Mapping[bytes, float]
    ) -> tuple[Move, Changes]:
        move, changes = self._move(self._known(block_hash))
        self._tree.unfinalize(finalized)
        lost = [(block.hash, block.extrinsics) for block in move.retracted]
        self.pool.replace(waiting, self.code.view(self.newest()), lost=lost, bans=bans)
        return move, changes

    def _move(self, target: ServedBlock) -> tuple[Move, Changes]:
        """Return how the best branch changed, and what leads from the former best state to the one now."""
        move = self._tree.route(target)
        touched = sorted({key for block in (*move.retracted, *move.enacted) for key in block.changes})
        state = self.newest().state
        before = [state.get(key) for key in touched]
        self._tree.follow(move)
        for block in move.retracted:
            self._top.undo(block.number, block.changes)
            for storage_key, changed in block.child_changes.items():
                self._children[storage_key].undo(block.number, changed)
        for block in move.enacted:
            self._note_changes(block)
        self.code.follow(self)
        state = self.newest().state
        now = [(key, state.get(key)) for key in touched]
        return move, {key: value for (key, value), old in zip(now, before, strict=True) if value != old}

    def _note_changes(self, block: ServedBlock) -> None:
        self._top.note(block.number, block.changes)
        for storage_key, changed in block.child_changes.items():
            self._children.setdefault(storage_key, TrieVersions()).note(block.number, changed)

    def finalize(self) -> None:
        """Make blocks final that are deep enough, and forget those that are older than what is kept."""
        number = self.best.number - self.finality_lag
        if self.most_final is not None:
            number = min(number, self.most_final())
        while self.finalized.number < number:
            block, pruned = self._tree.finalize_next()
            self.pool.finalize(block.hash)
            self.finalized_heads.emit(Finality(block, pruned))
        if self.kept_blocks is not None:
            for block in self._tree.forget(self.best.number - self.kept_blocks + 1):
                self._top.forget(block.number, block.changes)
                for storage_key, changed in block.child_changes.items():
                    self._children[storage_key].forget(block.number, changed)

    def _sealed_changes(self) -> tuple[Changes, Mapping[bytes, Changes]]:
        """Return what the last seal wrote: to the top trie, with the roots of child tries, and to each child trie."""
        top: dict[bytes, bytes | None] = {}
        children: dict[bytes, Changes] = {}
        for info, keys in self._state.last_changed().items():
            if info is None:
                top.update((key, self._state.get(key)) for key in keys)
                continue
            storage, entry = self._state.child(info), info.prefixed_storage_key()
            children[info.storage_key] = {key: storage.get(key) for key in keys}
            top[entry] = self._state.get(entry)
        return top, children

    def _known(self, block_hash: bytes) -> ServedBlock:
        block = self._tree.get(block_hash)
        if block is None:
            raise UnknownBlock(block_hash)
        return block

    def __repr__(self) -> str:
        return f"<ServedChain {self.name} at #{self.best.number}>"
