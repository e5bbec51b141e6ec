"""The blocks of a chain as a tree: one branch is the best, and grows; the others are kept for those who read them.

Law: the best branch holds the newest finalized block. A block beside it is *pruned* when a block is finalized that it
does not descend from. The genesis block stays; every other block is forgotten when it is old.
"""

from dataclasses import dataclass

from relaycast_node.chain.served_block import ServedBlock


@dataclass(frozen=True, slots=True)
class Move:
    """How the best branch changed: what left it, the newest first, and what joined it, the oldest first."""

    retracted: tuple[ServedBlock, ...]
    enacted: tuple[ServedBlock, ...]


class BlockTree:
    """Blocks by hash, from the genesis block on; where ``oldest`` is given, those between them are not kept."""

    def __init__(self, genesis: ServedBlock, oldest: ServedBlock | None = None) -> None:
        oldest = oldest or genesis
        self.genesis = genesis
        self._blocks = {genesis.hash: genesis, oldest.hash: oldest}
        self._branch = [oldest.hash]
        self._first = self._finalized = oldest.number
        """Number of the oldest block of the branch that is kept."""

        self._beside: dict[bytes, ServedBlock] = {}
        self._pruned: set[bytes] = set()

    @property
    def best(self) -> ServedBlock:
        """The end of the best branch."""
        return self._blocks[self._branch[-1]]

    @property
    def finalized(self) -> ServedBlock:
        """The newest block that stays for ever."""
        return self._blocks[self._branch[self._finalized - self._first]]

    @property
    def first(self) -> int:
        """Number of the oldest block whose state is kept."""
        return self._first

    def get(self, block_hash: bytes) -> ServedBlock | None:
        return self._blocks.get(block_hash)

    def hash_of(self, number: int) -> bytes | None:
        """Return the hash of the best branch's block with this number."""
        if number == 0:
            return self.genesis.hash
        place = number - self._first
        return self._branch[place] if 0 <= place < len(self._branch) else None

    def hashes_at(self, number: int) -> list[bytes]:
        """Return the hashes of all blocks with this number, the best branch's first."""
        best = self.hash_of(number)
        beside = [block.hash for block in self._beside.values() if block.number == number]
        return beside if best is None else [best, *beside]

    def above_branch(self, block: ServedBlock) -> list[ServedBlock]:
        """Return the blocks from the best branch, which does not count, up to ``block``, the oldest first."""
        found: list[ServedBlock] = []
        while block.hash in self._beside:
            found.append(block)
            block = self._blocks[block.header.parent_hash]
        return found[::-1]

    def may_be_best(self, block: ServedBlock) -> bool:
        """Return whether ``block`` is the newest finalized block or descends from it."""
        return self._fork_number(block) >= self._finalized

    def add(self, block: ServedBlock) -> None:
        """Let the best branch grow by ``block``, which may be one that was beside it."""
        assert block.header.parent_hash == self._branch[-1], "a block is noted on the best one"
        self._branch.append(block.hash)
        self._beside.pop(block.hash, None)
        self._blocks[block.hash] = block

    def route(self, target: ServedBlock) -> Move:
        """Return how the best branch would come to end with ``target``, which is kept here."""
        gone = self._branch[self._fork_number(target) + 1 - self._first :]
        return Move(tuple(self._blocks[it] for it in reversed(gone)), tuple(self.above_branch(target)))

    def follow(self, move: Move) -> None:
        """Change the best branch as ``route`` said."""
        if move.retracted:
            del self._branch[-len(move.retracted) :]
        for block in move.enacted:
            del self._beside[block.hash]
            self._branch.append(block.hash)
        self._beside |= {block.hash: block for block in reversed(move.retracted)}

    def finalize_next(self) -> tuple[ServedBlock, tuple[bytes, ...]]:
        """Finalize the next block of the branch; return it, and the hashes of the blocks that are pruned by that."""
        self._finalized += 1
        lost = [block for block in self._beside.values() if not self.may_be_best(block)]
        pruned = tuple(block.hash for block in lost if block.hash not in self._pruned)
        self._pruned.update(pruned)
        return self.finalized, pruned

    def unfinalize(self, number: int) -> None:
        """Let blocks above ``number`` be retracted again."""
        self._finalized = number
        self._pruned = {it for it in self._pruned if not self.may_be_best(self._blocks[it])}

    def forget(self, below: int) -> list[ServedBlock]:
        """Forget blocks under a number, at most the finalized one's.

        Return the blocks of the branch that became the oldest, one after the other.
        """
        below = min(below, self._finalized)
        if below <= self._first:
            return []
        for block in [it for it in self._beside.values() if self._fork_number(it) < below]:
            del self._beside[block.hash], self._blocks[block.hash]
            self._pruned.discard(block.hash)
        *gone, oldest = self._branch[: below - self._first + 1]
        followed = [self._blocks[it] for it in (*gone[1:], oldest)]
        for block_hash in gone:
            if block_hash != self.genesis.hash:
                del self._blocks[block_hash]
        del self._branch[: len(gone)]
        self._first = below
        return followed

    def _fork_number(self, block: ServedBlock) -> int:
        """Return the number of the newest block on the way to ``block`` that the best branch has."""
        above = self.above_branch(block)
        return block.number - len(above)
