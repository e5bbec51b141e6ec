"""The transaction pool: extrinsics that a chain takes, until a block includes them (sc-transaction-pool).

``submit`` validates against the newest view that the pool was given, and refuses with a ``PoolError`` that has the
codes and words of Substrate's ``author`` methods. An extrinsic that was refused as invalid, removed, dropped by a limit
or included is banned for half an hour. ``prune`` follows a block, ``retract`` a block that left the best chain.

An extrinsic that is taken, by submission or again, enforces the limits. One that a block makes ready does not: until
the next is taken, the ready ones can exceed their limit by what was future.

It differs from Substrate's pool in three points, each towards what a client can observe as true:

- an extrinsic that is already here is refused as such every time, and not banned for the second attempt;
- one that a block made invalid without including it is told ``invalid``, not ``inBlock``;
- promotion and eviction go by arrival where Substrate's go by the order of a hash map.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from relaycast_node.chain.exceptions import CodeRefused
from relaycast_node.extrinsic.extrinsic import extrinsic_hash, is_bare, take_extrinsic
from relaycast_node.extrinsic.pool_errors import (
    AlreadyImported,
    BadExtrinsicFormat,
    CycleDetected,
    ImmediatelyDropped,
    InvalidInPool,
    NoTagsProvided,
    PoolError,
    TemporarilyBanned,
    UnknownValidity,
    VerificationFailed,
)
from relaycast_node.extrinsic.tag_graph import Imported, PooledTransaction, QueueLimit, TagGraph
from relaycast_node.extrinsic.validity import PoolView, nonce_tag
from relaycast_node.extrinsic.validity_errors import InvalidTransaction, UnknownTransaction
from relaycast_node.extrinsic.watchers import (
    DROPPED,
    FUTURE,
    INVALID,
    READY,
    Disconnect,
    StatusCallback,
    StatusKind,
    TransactionStatus,
    Watchers,
)
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import U64_MAX

READY_LIMIT = QueueLimit(8_192, 20 << 20)
FUTURE_LIMIT = QueueLimit(512, 1 << 20)
"""sc-transaction-pool ``Options::default``."""

BAN_SECONDS = 30 * 60

MOST_BANNED = 4_096
"""Beyond these the oldest bans are lifted, down to half of them."""


Statuses = Mapping[bytes, TransactionStatus]


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How many transactions are ready and future, and how many bytes they have."""

    ready: int
    ready_bytes: int
    future: int
    future_bytes: int


class TransactionPool:
    """Extrinsics of one chain, ready for the next block or waiting for others.

    INVARIANT: the ready ones of an account have successive nonces, the lowest of which is the account's nonce.
    """

    def __init__(
        self,
        view: PoolView,
        *,
        ready_limit: QueueLimit = READY_LIMIT,
        future_limit: QueueLimit = FUTURE_LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.view = view
        self._limits = (ready_limit, future_limit)
        self._clock = clock
        self._graph = TagGraph()
        self._watchers = Watchers()
        self._banned_until: dict[bytes, float] = {}

    def submit(self, data: bytes) -> bytes:
        """Take an extrinsic with its length in front and return its hash; raises ``PoolError``."""
        transaction_hash = _format_checked(data)
        self._refuse_known(transaction_hash)
        try:
            transaction = self._validated(transaction_hash, data)
        except (InvalidInPool, VerificationFailed, NoTagsProvided):
            self._ban([transaction_hash])
            raise
        self._import(transaction)
        if transaction_hash in self._enforce_limits():
            raise ImmediatelyDropped
        return transaction_hash

    def submit_and_watch(self, data: bytes, callback: StatusCallback) -> tuple[bytes, Disconnect]:
        """Take an extrinsic and tell ``callback`` each status; return its hash, and the function that ends this.

        A refused extrinsic raises ``PoolError``, and ``callback`` hears nothing.
        """
        early: list[TransactionStatus] = []
        is_taken = False

        def receive(status: TransactionStatus) -> None:
            if is_taken:
                callback(status)
            else:
                early.append(status)

        disconnect = self.watch(extrinsic_hash(data), receive)
        try:
            transaction_hash = self.submit(data)
        except PoolError:
            disconnect()
            raise
        is_taken = True
        for status in early:
            callback(status)
        return transaction_hash, disconnect

    def watch(self, transaction_hash: bytes, callback: StatusCallback) -> Disconnect:
        """Tell ``callback`` each status of an extrinsic from here on; return the function that ends this."""
        return self._watchers.connect(transaction_hash, callback)

    def ready(self) -> Iterator[PooledTransaction]:
        """Yield the transactions that the next block can include, in its order."""
        return self._graph.ready()

    def pending(self) -> list[bytes]:
        """Return the extrinsics that are ready, in the order of the next block (``author_pendingExtrinsics``)."""
        return [transaction.data for transaction in self.ready()]

    def futures(self) -> list[bytes]:
        """Return the extrinsics that wait for others, by arrival."""
        return [transaction.data for transaction in self._graph.future_queue.members.values()]

    @property
    def listener_failures(self) -> int:
        """The number of failed callbacks of extrinsic watchers."""
        return self._watchers.failures

    @property
    def bans(self) -> Mapping[bytes, float]:
        """The extrinsics that are banned, by hash, with the time when that ends."""
        return MappingProxyType(self._banned_until)

    def status(self) -> PoolStatus:
        ready, future = self._graph.ready_queue, self._graph.future_queue
        return PoolStatus(len(ready.members), ready.total_bytes, len(future.members), future.total_bytes)

    def __contains__(self, transaction_hash: object) -> bool:
        return transaction_hash in self._graph

    def next_nonce(self, account: bytes) -> int:
        """Return the nonce behind the account's ready transactions (``system_accountNextIndex``)."""
        nonce = self.view.nonce(account)
        while self._graph.provides(nonce_tag(account, nonce)):
            nonce += 1
        return nonce

    def remove(self, hashes: Iterable[bytes]) -> list[bytes]:
        """Remove and ban transactions, as invalid; return their hashes and those of the ready ones that needed them."""
        wanted = list(hashes)
        self._ban(wanted)
        return [self._tell(gone.hash, INVALID) for gone in self._graph.remove(wanted)]

    def prune(self, included: Sequence[bytes], view: PoolView) -> None:
        """Take note of a block: ``included`` are its extrinsics, ``view`` is the chain with that block at its head."""
        self.view = view
        hashes = [extrinsic_hash(data) for data in included]
        tags = [tag for one, data in zip(hashes, included, strict=True) for tag in self._provided_by(one, data)]
        pruned = self._graph.prune(dict.fromkeys(tags))
        for imported in pruned.promoted:
            self._tell_imported(imported)
        for obsolete in pruned.obsolete:
            self._tell(obsolete, DROPPED)
        self._ban(hashes)
        in_block = set(hashes)
        left = [gone for gone in pruned.pruned if gone.hash not in in_block]
        if self._import_again(left, before=dict.fromkeys((gone.hash for gone in left), READY)):
            self._enforce_limits()
        block_hash = view.block_hash(view.block_number)
        assert block_hash is not None, "a view knows the hash of its own block"
        self._watchers.in_block(block_hash, hashes)
        self._remove_stale()

    def finalize(self, block_hash: bytes) -> None:
        """Tell those who follow the extrinsics of this block that it is final."""
        self._watchers.finalized(block_hash)

    def retract(self, block_hash: bytes, extrinsics: Sequence[bytes], view: PoolView) -> None:
        """Take a block back: its extrinsics, where they are valid in ``view``, wait for another block."""
        self._watchers.retracted(block_hash)
        returning = [data for data in extrinsics if not is_bare(data)]
        for data in returning:
            self._banned_until.pop(extrinsic_hash(data), None)
        self.revalidate(view, returning=returning)

    def revalidate(self, view: PoolView, *, returning: Iterable[bytes] = ()) -> None:
        """Judge all transactions anew, after a change of state that no block explains, and take ``returning`` in first.

        Those that are no longer valid leave as such; the others keep their order.
        """
        self.view = view
        ready, future = self._graph.ready_queue.members, self._graph.future_queue.members
        before = dict.fromkeys(ready, READY) | dict.fromkeys(future, FUTURE)
        known = self._graph.clear()
        back = {extrinsic_hash(data): data for data in returning}
        candidates = [PooledTransaction(one, data, 0, (), (), U64_MAX) for one, data in back.items()]
        self._import_again([*candidates, *(one for one in known if one.hash not in back)], before=before)
        self._enforce_limits()

    def replace(
        self,
        waiting: Iterable[bytes],
        view: PoolView,
        *,
        lost: Iterable[tuple[bytes, Sequence[bytes]]] = (),
        bans: Mapping[bytes, float] = MappingProxyType({}),
    ) -> None:
        """Hold the extrinsics ``waiting`` and no others, as if those had never come; only ``bans`` stay.

        ``lost`` are the blocks, by hash and with their extrinsics, that are gone with them.
        """
        self.view = view
        self._banned_until = dict(bans)
        wanted = {extrinsic_hash(data): data for data in waiting}
        for block_hash, extrinsics in lost:
            self._watchers.retracted(block_hash)
            for included in map(extrinsic_hash, extrinsics):
                if included not in wanted:
                    self._tell(included, DROPPED)
        for gone in self._graph.clear():
            if gone.hash not in wanted:
                self._tell(gone.hash, DROPPED)
        self._import_again(PooledTransaction(one, data, 0, (), (), U64_MAX) for one, data in wanted.items())

    def _import_again(
        self, transactions: Iterable[PooledTransaction], *, before: Statuses = MappingProxyType({})
    ) -> bool:
        """Validate and import; tell those whose status is another than ``before``. Return whether one was imported."""
        is_one_imported = False
        for transaction in transactions:
            try:
                judged = self._validated(transaction.hash, transaction.data)
                imported = self._graph.import_(judged)
            except (InvalidInPool, VerificationFailed, UnknownValidity):
                self._ban([transaction.hash])
                self._tell(transaction.hash, INVALID)
            except CycleDetected as cycle:
                for lost in cycle.lost:
                    self._tell(lost, DROPPED)
            except PoolError:
                self._tell(transaction.hash, DROPPED)
            else:
                self._tell_imported(imported, before=before)
                is_one_imported = True
        return is_one_imported

    def _refuse_known(self, transaction_hash: bytes) -> None:
        if transaction_hash in self._graph:
            raise AlreadyImported(transaction_hash)
        if self._clock() <= self._banned_until.get(transaction_hash, float("-inf")):
            raise TemporarilyBanned

    def _validated(self, transaction_hash: bytes, data: bytes) -> PooledTransaction:
        """Ask the runtime; its refusals are ``VerificationFailed``, ``InvalidInPool`` and ``UnknownValidity``."""
        try:
            valid = self.view.judge(data)
        except (CodecError, CodeRefused) as error:
            raise VerificationFailed(str(error)) from error
        except InvalidTransaction as refusal:
            raise InvalidInPool(refusal) from refusal
        except UnknownTransaction as refusal:
            raise UnknownValidity(refusal) from refusal
        if not valid.provides:
            raise NoTagsProvided
        valid_till = min(self.view.block_number + valid.longevity, U64_MAX)
        return PooledTransaction(transaction_hash, data, valid.priority, valid.requires, valid.provides, valid_till)

    def _import(self, transaction: PooledTransaction) -> None:
        try:
            imported = self._graph.import_(transaction)
        except CycleDetected as cycle:
            for lost in cycle.lost:
                self._tell(lost, DROPPED)
            raise
        self._tell_imported(imported)

    def _tell_imported(self, imported: Imported, *, before: Statuses = MappingProxyType({})) -> None:
        """Tell what an import did to whose status is another than ``before``."""
        usurped = TransactionStatus(StatusKind.USURPED, imported.hash)
        for one, status in [
            (imported.hash, READY if imported.is_ready else FUTURE),
            *((replaced, usurped) for replaced in imported.replaced),
            *((promoted, READY) for promoted in imported.promoted),
        ]:
            if before.get(one) != status:
                self._tell(one, status)

    def _tell(self, transaction_hash: bytes, status: TransactionStatus) -> bytes:
        self._watchers.tell(transaction_hash, status)
        return transaction_hash

    def _enforce_limits(self) -> set[bytes]:
        """Drop and ban what is beyond the limits; return the hashes."""
        dropped = [gone.hash for gone in self._graph.enforce(*self._limits)]
        self._ban(dropped)
        return {self._tell(one, DROPPED) for one in dropped}

    def _provided_by(self, transaction_hash: bytes, data: bytes) -> tuple[bytes, ...]:
        """Return the tags that an included extrinsic provides: as the pool knows, or as the chain says."""
        known = self._graph.get(transaction_hash)
        return self.view.provided_by(data) if known is None else known.provides

    def _remove_stale(self) -> None:
        """Remove what the next block may no longer include, and lift the bans that are over."""
        now, number = self._clock(), self.view.block_number
        everything = [*self._graph.ready(), *self._graph.future_queue.members.values()]
        stale = [one.hash for one in everything if one.valid_till <= number]
        if stale:
            self.remove(stale)
        self._banned_until = {one: until for one, until in self._banned_until.items() if until >= now}

    def _ban(self, hashes: Iterable[bytes]) -> None:
        until = self._clock() + BAN_SECONDS
        for one in hashes:
            self._banned_until.pop(one, None)
            self._banned_until[one] = until
        if len(self._banned_until) > MOST_BANNED:
            oldest_first = list(self._banned_until)
            for one in oldest_first[: len(oldest_first) - MOST_BANNED // 2]:
                del self._banned_until[one]


def _format_checked(data: bytes) -> bytes:
    """Return the hash of an extrinsic whose length fits; raises ``BadExtrinsicFormat``."""
    try:
        take_extrinsic(data)
    except CodecError as error:
        raise BadExtrinsicFormat(str(error)) from error
    return extrinsic_hash(data)
