"""The pool's order: which transaction waits for which, by the tags that they require and provide (sc-transaction-pool).

A transaction is *ready* when every tag that it requires is provided by another ready one or was provided by a block;
otherwise it is *future*. No two ready transactions provide one tag. The later one must have a higher priority than all
that it replaces together; then they leave, with those that depend on them.

Nothing here knows what an extrinsic is, when it is valid, or who watches it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count

from relaycast_node.extrinsic.pool_errors import AlreadyImported, CycleDetected, TooLowPriority
from relaycast_xcm.primitives import U64_MAX, BlockNumber

Tag = bytes


@dataclass(frozen=True, slots=True)
class PooledTransaction:
    """An extrinsic in the pool: ``valid_till`` is the first block that may not include it."""

    hash: bytes
    data: bytes
    priority: int
    requires: tuple[Tag, ...]
    provides: tuple[Tag, ...]
    valid_till: BlockNumber

    def __post_init__(self) -> None:
        object.__setattr__(self, "requires", tuple(dict.fromkeys(self.requires)))
        object.__setattr__(self, "provides", tuple(dict.fromkeys(self.provides)))


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """How many transactions a queue holds, and how many bytes of them."""

    count: int
    total_bytes: int


@dataclass(slots=True)
class Queue:
    """Transactions by hash, in order of arrival."""

    members: dict[bytes, PooledTransaction] = field(default_factory=dict)
    arrivals: dict[bytes, int] = field(default_factory=dict)
    total_bytes: int = 0

    def add(self, transaction: PooledTransaction, arrival: int) -> None:
        self.members[transaction.hash] = transaction
        self.arrivals[transaction.hash] = arrival
        self.total_bytes += len(transaction.data)

    def discard(self, transaction_hash: bytes) -> PooledTransaction | None:
        """Remove and return a transaction; ``None`` when it is not here."""
        transaction = self.members.pop(transaction_hash, None)
        if transaction is not None:
            del self.arrivals[transaction_hash]
            self.total_bytes -= len(transaction.data)
        return transaction

    def exceeds(self, limit: QueueLimit) -> bool:
        return len(self.members) > limit.count or self.total_bytes > limit.total_bytes


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: ``is_ready`` or future, which future ones became ready, which ready ones were replaced."""

    hash: bytes
    is_ready: bool
    promoted: tuple[bytes, ...] = ()
    replaced: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Pruned:
    """What the tags of a block did: the ready ones that left, the imports they caused, the future ones now obsolete."""

    pruned: tuple[PooledTransaction, ...]
    promoted: tuple[Imported, ...]
    obsolete: tuple[bytes, ...]


class TagGraph:
    """Ready and future transactions. Each is in one of the two queues, under its hash."""

    def __init__(self) -> None:
        self.ready_queue = Queue()
        self.future_queue = Queue()
        self._provided: dict[Tag, bytes] = {}
        self._dependents: dict[Tag, dict[bytes, None]] = {}
        self._in_blocks: dict[bytes, set[Tag]] = {}
        self._arrivals = count()

    def __contains__(self, transaction_hash: object) -> bool:
        return transaction_hash in self.ready_queue.members or transaction_hash in self.future_queue.members

    def get(self, transaction_hash: bytes) -> PooledTransaction | None:
        return self.ready_queue.members.get(transaction_hash) or self.future_queue.members.get(transaction_hash)

    def provides(self, tag: Tag) -> bool:
        """Return whether a ready transaction provides ``tag``."""
        return tag in self._provided

    def import_(self, transaction: PooledTransaction) -> Imported:
        """Take a transaction; it and all that it makes ready become ready, or it waits.

        Raises ``AlreadyImported``, ``TooLowPriority`` or ``CycleDetected``.
        """
        if transaction.hash in self:
            raise AlreadyImported(transaction.hash)
        if all(tag in self._provided for tag in transaction.requires):
            return self._import_ready(transaction)
        self.future_queue.add(transaction, next(self._arrivals))
        self._in_blocks[transaction.hash] = set()
        return Imported(transaction.hash, is_ready=False)

    def _import_ready(self, first: PooledTransaction) -> Imported:
        """Take a transaction that is ready, then those that wait for its tags, then those that wait for theirs."""
        replaced = self._enter(first)
        promoted: list[bytes] = []
        provided = list(first.provides)
        while provided:
            for waiting in self._released((provided.pop(0),)):
                try:
                    left = self._enter(waiting)
                except TooLowPriority:
                    replaced.append(waiting.hash)
                    continue
                replaced += left
                promoted = [one for one in promoted if one not in left] + [waiting.hash]
                provided += waiting.provides
        if first.hash in replaced:
            lost = [gone.hash for gone in self.remove(promoted)]
            raise CycleDetected(tuple(dict.fromkeys([*replaced, *lost])))
        return Imported(first.hash, True, tuple(promoted), tuple(replaced))

    def _enter(self, transaction: PooledTransaction) -> list[bytes]:
        """Put a transaction among the ready; return the hashes of those that it replaces."""
        rivals = dict.fromkeys(self._provided[tag] for tag in transaction.provides if tag in self._provided)
        replaced: list[bytes] = []
        if rivals:
            old = min(sum(self.ready_queue.members[rival].priority for rival in rivals), U64_MAX)
            if old >= transaction.priority:
                raise TooLowPriority(old, transaction.priority)
            replaced = [gone.hash for gone in self._leave(rivals, kept=transaction.provides)]
        self.ready_queue.add(transaction, next(self._arrivals))
        for tag in transaction.requires:
            self._dependents.setdefault(tag, {})[transaction.hash] = None
        for tag in transaction.provides:
            self._provided[tag] = transaction.hash
        return replaced

    def _leave(self, hashes: Iterable[bytes], *, kept: Collection[Tag] = ()) -> list[PooledTransaction]:
        """Remove ready transactions and all that depend on them; a tag that is ``kept`` has another provider at once.

        Those that depend on one which loses no tag stay.
        """
        leaving, removed = list(hashes), []
        while leaving:
            transaction = self._forget(leaving.pop())
            if transaction is None:
                continue
            removed.append(transaction)
            lost = [tag for tag in transaction.provides if tag not in kept]
            for tag in lost:
                del self._provided[tag]
            if lost:
                leaving += [one for tag in transaction.provides for one in self._dependents.get(tag, ())]
        return removed

    def _forget(self, transaction_hash: bytes) -> PooledTransaction | None:
        """Take a transaction off the ready queue, and from those that depend on others."""
        transaction = self.ready_queue.discard(transaction_hash)
        if transaction is not None:
            for tag in transaction.requires:
                dependents = self._dependents[tag]
                del dependents[transaction_hash]
                if not dependents:
                    del self._dependents[tag]
        return transaction

    def _released(self, tags: Collection[Tag]) -> list[PooledTransaction]:
        """Remove and return the future transactions that wait for one of ``tags`` and for no other, by arrival."""
        waiting = [one for one in self.future_queue.members.values() if any(tag in one.requires for tag in tags)]
        released = [one for one in waiting if not self._missing(one)]
        for transaction in released:
            self._discard_future(transaction.hash)
        return released

    def _missing(self, transaction: PooledTransaction) -> list[Tag]:
        in_blocks = self._in_blocks[transaction.hash]
        return [tag for tag in transaction.requires if tag not in self._provided and tag not in in_blocks]

    def _discard_future(self, transaction_hash: bytes) -> PooledTransaction | None:
        self._in_blocks.pop(transaction_hash, None)
        return self.future_queue.discard(transaction_hash)

    def remove(self, hashes: Iterable[bytes]) -> list[PooledTransaction]:
        """Remove transactions and every ready one that depends on them; return those that were there."""
        wanted = list(hashes)
        removed = self._leave(wanted)
        return removed + [gone for one in wanted if (gone := self._discard_future(one)) is not None]

    def clear(self) -> list[PooledTransaction]:
        """Remove and return all: the ready ones in their order, then the future ones by arrival."""
        everything = [*self.ready(), *self.future_queue.members.values()]
        self.remove([one.hash for one in everything])
        return everything

    def ready(self) -> Iterator[PooledTransaction]:
        """Yield the ready transactions as a block takes them.

        None comes before one that it requires. Among those that may come, the highest priority is first, then the one
        that is valid for the shortest time, then the one that came first.
        """
        members, arrivals = self.ready_queue.members, self.ready_queue.arrivals
        awaited = {one.hash: sum(tag in self._provided for tag in one.requires) for one in members.values()}
        best = [_rank(one, arrivals) for one in members.values() if not awaited[one.hash]]
        heapify(best)
        while best:
            transaction = members[heappop(best)[-1]]
            yield transaction
            for tag in transaction.provides:
                for dependent in self._dependents.get(tag, ()):
                    awaited[dependent] -= 1
                    if not awaited[dependent]:
                        heappush(best, _rank(members[dependent], arrivals))

    def prune(self, tags: Collection[Tag]) -> Pruned:
        """Remove what a block has made obsolete: it provided ``tags``.

        A ready transaction that provides one of them leaves, and so do those that it required and that nothing else
        depends on. What depends on it stays. A future one that provides such a tag is obsolete.
        """
        wanted = set(tags)
        stale = [one.hash for one in self.future_queue.members.values() if not wanted.isdisjoint(one.provides)]
        for one in stale:
            self._discard_future(one)
        for waiting in self.future_queue.members.values():
            self._in_blocks[waiting.hash].update(wanted.intersection(waiting.requires))
        pruned = [gone for tag in tags for gone in self._prune_tag(tag)]
        promoted: list[Imported] = []
        obsolete = list(stale)
        for transaction in self._released(wanted):
            try:
                promoted.append(self._import_ready(transaction))
            except TooLowPriority:
                obsolete.append(transaction.hash)
            except CycleDetected as cycle:
                obsolete += cycle.lost
        return Pruned(tuple(pruned), tuple(promoted), tuple(obsolete))

    def _prune_tag(self, tag: Tag) -> list[PooledTransaction]:
        pruned, providers = [], [self._provided[tag]] if tag in self._provided else []
        while providers:
            transaction = self._forget(providers.pop())
            if transaction is None:
                continue
            pruned.append(transaction)
            for provided in transaction.provides:
                del self._provided[provided]
            for required in transaction.requires:
                earlier = self.ready_queue.members.get(self._provided.get(required, b""))
                if earlier and not any(self._dependents.get(one) for one in earlier.provides):
                    providers.append(earlier.hash)
        return pruned

    def enforce(self, ready_limit: QueueLimit, future_limit: QueueLimit) -> list[PooledTransaction]:
        """Remove the worst until both limits hold: of the ready the lowest priority, of the future the longest here."""
        removed = []
        while self.ready_queue.exceeds(ready_limit):
            arrivals = self.ready_queue.arrivals
            worst = min(self.ready_queue.members.values(), key=lambda one: (one.priority, arrivals[one.hash]))
            removed += self._leave([worst.hash])
        while self.future_queue.exceeds(future_limit):
            removed += self.remove([next(iter(self.future_queue.members))])
        return removed


def _rank(transaction: PooledTransaction, arrivals: dict[bytes, int]) -> tuple[int, BlockNumber, int, bytes]:
    return -transaction.priority, transaction.valid_till, arrivals[transaction.hash], transaction.hash
