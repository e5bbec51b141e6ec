"""One chain behind the RPC: its blocks from the genesis on, every state between them, its pool, and who listens.

Law: blocks are noted one after the other, each on the one before. What was sealed never changes: a state is read by
bisection among the changes of blocks, and what can be proven is what the chain itself keeps.
"""

from collections.abc import Iterable, Mapping

from relaycast_collator.header import Header
from relaycast_node.chain.code import CODE, BlockContents, BlockState, ChainCode, CodeVersion
from relaycast_node.chain.exceptions import UnknownBlock
from relaycast_node.chain.served_block import Changes, ServedBlock
from relaycast_node.chain.signal import Signal
from relaycast_node.chain.versions import PastState, TrieVersions
from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_pallets.frame.state import State
from relaycast_trie.child_info import ChildInfo
from relaycast_xcm.primitives import ParaId

PROVABLE_BLOCKS = 256
"""States that can be proven from, the newest; nodes that are no archives keep as many."""


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
    ) -> None:
        self.name = name
        self.para_id = para_id
        self.properties: dict[str, object] = dict(properties or {})
        self.finality_lag = finality_lag
        self.code = code
        self.genesis_hash = genesis.hash
        self.new_heads: Signal[ServedBlock] = Signal()
        self.finalized_heads: Signal[ServedBlock] = Signal()
        self.submitted: Signal[bytes] = Signal()
        self._state = state
        self._top = TrieVersions(state.top.values)
        self._children = {info.storage_key: TrieVersions(state.child(info).values) for info in state.children()}
        first = ServedBlock(genesis, self.genesis_hash)
        self._blocks = {first.hash: first}
        self._canonical = [first.hash]
        self._finalized = 0
        self._contents = contents
        code.follow(self)
        self.pool = TransactionPool(code.view(self.newest()))
        contents.ready = self.pool.pending

    @property
    def best(self) -> ServedBlock:
        """The newest block."""
        return self._blocks[self._canonical[-1]]

    @property
    def finalized(self) -> ServedBlock:
        """The newest block that stays for ever."""
        return self._blocks[self._canonical[self._finalized]]

    def block(self, block_hash: bytes) -> ServedBlock | None:
        return self._blocks.get(block_hash)

    def hash_of(self, number: int) -> bytes | None:
        """Return the hash of the block with this number."""
        return self._canonical[number] if 0 <= number < len(self._canonical) else None

    def hashes_at(self, number: int) -> list[bytes]:
        """Return the hashes of all blocks with this number."""
        found = self.hash_of(number)
        return [] if found is None else [found]

    def state_at(self, block_hash: bytes) -> PastState:
        """Return the state after a block; raises ``UnknownBlock``."""
        return PastState(self._top, self._children, self._known(block_hash).number)

    def newest(self) -> BlockState:
        """Return the newest block with its state."""
        return self.state_of(self._canonical[-1])

    def state_of(self, block_hash: bytes) -> BlockState:
        """Return a block with its state; raises ``UnknownBlock``."""
        header = self._known(block_hash).header
        return BlockState(header, block_hash, PastState(self._top, self._children, header.number))

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
        """Give an extrinsic to the pool and return its hash; raises ``PoolError``."""
        found = self.pool.submit(data)
        self.submitted.emit(found)
        return found

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

    def set_storage(self, values: Mapping[bytes, bytes | None], *, child: bytes | None = None) -> None:
        """Write values into storage: the next block seals them; ``None`` removes a key.

        ``child`` is the bare name of a child trie. ``ValueError`` for a key of the top trie that names a child trie,
        and for code that is none.
        """
        if child is None and CODE in values:
            self.code.take_over(values[CODE])
        storage = self._state if child is None else self._state.child(ChildInfo.new_default(child))
        for key, value in values.items():
            if value is None:
                storage.kill(key)
            else:
                storage.put(key, value)

    def note(self, header: Header) -> ServedBlock:
        """Take note of the block that the chain has just sealed, and tell those who listen."""
        assert header.parent_hash == self._canonical[-1], "blocks are noted one after the other"
        block_hash = header.hash
        changes, child_changes = self._sealed_changes()
        block = ServedBlock(header, block_hash, tuple(self._contents.extrinsics), changes, child_changes)
        self._top.note(header.number, changes)
        for storage_key, changed in child_changes.items():
            self._children.setdefault(storage_key, TrieVersions()).note(header.number, changed)
        self._blocks[block_hash] = block
        self._canonical.append(block_hash)
        self.code.follow(self)
        self.pool.prune(block.extrinsics, self.code.view(self.newest()))
        self.pool.remove(map(extrinsic_hash, self._contents.invalid))
        self.new_heads.emit(block)
        self._finalize(header.number - self.finality_lag)
        return block

    def _finalize(self, number: int) -> None:
        """Make all blocks up to ``number`` stay for ever."""
        while self._finalized < number:
            self._finalized += 1
            block = self.finalized
            self.pool.finalize(block.hash)
            self.finalized_heads.emit(block)

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
        block = self._blocks.get(block_hash)
        if block is None:
            raise UnknownBlock(block_hash)
        return block

    def __repr__(self) -> str:
        return f"<ServedChain {self.name} at #{self.best.number}>"
