"""``chainHead_v1_follow``: one client that follows a chain, the blocks that it has pinned, and its operations.

Law: a reported block stays readable until the client unpins it. A client that pins too many blocks, or blocks that are
too old to be kept, is stopped and has to follow again. Events of an operation come after the answer with its id.
"""

from collections.abc import Callable, Iterator

import msgspec

from relaycast_node.chain.code import CODE
from relaycast_node.chain.exceptions import ChainRefusal
from relaycast_node.chain.served_chain import Finality, HeadMove
from relaycast_node.rpc.chain_protocols import BlockFace
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.session import Subscription
from relaycast_node.rpc.storage_queries import Item, StorageQuery, StorageView
from relaycast_node.rpc.version_json import runtime_json
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie.exceptions import MissingNode

MOST_PINNED = 512
"""Blocks that one client may have pinned: the default of a Substrate node."""

MOST_OPERATIONS = 16
"""Operations that one client may have under way."""

FINALIZED_AT_FIRST = 16
"""The newest finalized blocks that a client gets at the start."""

ITEMS_AT_A_TIME = 1_000
BYTES_AT_A_TIME = 1 << 20
STEPS_AT_A_TIME = 16
"""A client asks to continue after each of these parts of a large answer, or of a long search."""

Event = dict[str, object]


class StorageOperation:
    """A storage query under way: ``items`` that were not sent yet; ``is_waiting`` for the client to continue."""

    def __init__(self, items: Iterator[Item | None]) -> None:
        self._items = items
        self.is_waiting = False
        """Whether the client was told to ask for more, and has not asked."""

    def part(self) -> tuple[list[Item], bool]:
        """Return the next items and whether they are the last."""
        found: list[Item] = []
        size = steps = 0
        for item in self._items:
            if item is None:
                steps += 1
            else:
                found.append(item)
                size += sum(map(len, item.values()))
            if len(found) >= ITEMS_AT_A_TIME or size > BYTES_AT_A_TIME or steps >= STEPS_AT_A_TIME:
                return found, False
        return found, True


class ChainFollow:
    """One follow subscription of one client; ``with_runtime`` it tells of runtimes, and calls them."""

    def __init__(self, context: RpcContext, subscription: Subscription, *, with_runtime: bool) -> None:
        self._context = context
        self._subscription = subscription
        self.with_runtime = with_runtime
        self._pinned: dict[bytes, None] = {}
        self._reported: set[bytes] = set()
        """Blocks that the client knows of and that are not final yet."""

        self._operations: dict[str, StorageOperation | None] = {}
        self._count = 0
        self._is_stopped = False
        self._begin()
        subscription.on_close(context.chain.new_heads.connect(self._hear))
        subscription.on_close(context.chain.moved_heads.connect(self._hear_moved))
        subscription.on_close(context.chain.finalized_heads.connect(self._hear_finalized))

    @property
    def is_stopped(self) -> bool:
        """Whether it was ended from here: to the client it is as one that never was."""
        return self._is_stopped

    def pinned(self, block_hash: bytes) -> bool:
        return block_hash in self._pinned

    def unpin(self, hashes: list[bytes]) -> None:
        """Unpin these blocks."""
        for block_hash in hashes:
            self._pinned.pop(block_hash, None)

    @property
    def has_room(self) -> bool:
        """Whether one more operation may begin."""
        return not self._is_stopped and len(self._operations) < MOST_OPERATIONS

    def begin_body(self, block_hash: bytes) -> tuple[str, Callable[[], None]]:
        """Return the id of an operation that sends a block's extrinsics, and a function that starts it."""
        return self._operation(lambda: self._body(block_hash))

    def begin_call(self, block_hash: bytes, method: str, data: bytes) -> tuple[str, Callable[[], None]]:
        """Return the id of an operation that sends a runtime call's result, and a function that starts it."""

        def done() -> Event:
            try:
                output = self._context.chain.call(method, data, block_hash)
            except (ChainRefusal, MissingNode) as refusal:
                return {"event": "operationError", "error": str(refusal)}
            return {"event": "operationCallDone", "output": hexed(output)}

        return self._operation(done)

    def begin_storage(
        self, block_hash: bytes, queries: list[StorageQuery], child: bytes | None
    ) -> tuple[str, Callable[[], None]]:
        """Return the id of an operation that sends storage items, and a function that starts it."""
        operation_id = self._new_id()

        items = StorageView(self._context.chain, block_hash, child).items(queries)
        self._operations[operation_id] = StorageOperation(items)
        return operation_id, lambda: self._go_on(operation_id)

    def knows(self, operation_id: str) -> bool:
        """Return whether an operation has begun and not ended."""
        return operation_id in self._operations

    def resume(self, operation_id: str) -> Callable[[], None] | None:
        """Return what goes on with an operation that waits, ``None`` where none with this id does."""
        operation = self._operations.get(operation_id)
        if operation is None or not operation.is_waiting:
            return None
        operation.is_waiting = False
        return lambda: self._go_on(operation_id)

    def stop_operation(self, operation_id: str) -> None:
        """Cancel an operation; no more of its events are sent."""
        self._operations.pop(operation_id, None)

    def _operation(self, done: Callable[[], Event]) -> tuple[str, Callable[[], None]]:
        operation_id = self._new_id()
        self._operations[operation_id] = None

        def run() -> None:
            if operation_id in self._operations:
                event = done()
                self._operations.pop(operation_id, None)
                self._send({**event, "operationId": operation_id})

        return operation_id, run

    def _go_on(self, operation_id: str) -> None:
        operation = self._operations.get(operation_id)
        if operation is None:
            return
        try:
            items, is_last = operation.part()
        except StateDiscarded:
            self._operations.pop(operation_id, None)
            self._send({"event": "operationInaccessible", "operationId": operation_id})
            return
        except MissingNode as error:
            self._operations.pop(operation_id, None)
            told = f"MissingNode: {error}"
            self._send({"event": "operationError", "operationId": operation_id, "error": told})
            return
        if items:
            self._send({"event": "operationStorageItems", "operationId": operation_id, "items": items})
        operation.is_waiting = not is_last
        if is_last:
            self._operations.pop(operation_id, None)
        name = "operationStorageDone" if is_last else "operationWaitingForContinue"
        self._send({"event": name, "operationId": operation_id})

    def _new_id(self) -> str:
        self._count += 1
        return str(self._count)

    def _body(self, block_hash: bytes) -> Event:
        block = self._context.chain.block(block_hash)
        if block is None:  # too old to be kept: the next block stops this subscription
            return {"event": "operationInaccessible"}
        return {"event": "operationBodyDone", "value": [hexed(it) for it in block.extrinsics]}

    def _begin(self) -> None:
        """Send the newest finalized blocks, those above them, and the best block."""
        chain = self._context.chain
        last = chain.finalized.header.number
        numbers = range(max(0, last - FINALIZED_AT_FIRST + 1), last + 1)
        finalized = [found for number in numbers if (found := chain.hash_of(number)) is not None]
        opening: Event = {"event": "initialized", "finalizedBlockHashes": [hexed(it) for it in finalized]}
        if self.with_runtime:
            opening["finalizedBlockRuntime"] = self._runtime(finalized[-1])
        self._pinned |= dict.fromkeys(finalized)
        self._send(opening)
        for number in range(last + 1, chain.best.header.number + 1):
            block_hash = chain.hash_of(number)
            block = None if block_hash is None else chain.block(block_hash)
            assert block is not None
            self._tell_new(block)
        self._tell_best(chain.best)

    def _hear(self, block: BlockFace) -> None:
        oldest = next(iter(self._pinned), None)
        is_forgotten = oldest is not None and self._context.chain.block(oldest) is None
        if is_forgotten or len(self._pinned) >= MOST_PINNED:
            self._stop()
        if not self._is_stopped:
            self._tell_new(block)
            self._tell_best(block)

    def _hear_moved(self, move: HeadMove) -> None:
        """Report that another block is the best; where finalized blocks went, the client has to begin anew."""
        if move.is_rewound:
            self._stop()
        if not self._is_stopped:
            for block in self._unreported(move.block):
                self._tell_new(block)
            self._tell_best(move.block)

    def _unreported(self, block: BlockFace) -> list[BlockFace]:
        """Return the blocks on the way from the finalized block to this one that the client does not know, in order."""
        chain = self._context.chain
        found: list[BlockFace] = []
        while block.hash not in self._reported and block.header.number > chain.finalized.header.number:
            found.append(block)
            parent = chain.block(block.header.parent_hash)
            assert parent is not None, "the way to the finalized block is kept"
            block = parent
        return found[::-1]

    def _hear_finalized(self, final: Finality) -> None:
        if not self._is_stopped:
            found, pruned = hexed(final.block.hash), [hexed(it) for it in final.pruned if it in self._reported]
            self._reported.difference_update((final.block.hash, *final.pruned))
            self._send({"event": "finalized", "finalizedBlockHashes": [found], "prunedBlockHashes": pruned})

    def _tell_new(self, block: BlockFace) -> None:
        self._pinned[block.hash] = None
        self._reported.add(block.hash)
        parent = hexed(block.header.parent_hash)
        told: Event = {"event": "newBlock", "blockHash": hexed(block.hash), "parentBlockHash": parent}
        if self.with_runtime:
            told["newRuntime"] = self._runtime(block.hash) if CODE in block.changes else None
        self._send(told)

    def _tell_best(self, block: BlockFace) -> None:
        self._send({"event": "bestBlockChanged", "bestBlockHash": hexed(block.hash)})

    def _stop(self) -> None:
        """End the subscription: no more events, no pinned blocks."""
        if not self._is_stopped:
            self._is_stopped = True
            self._pinned.clear()
            self._operations.clear()
            self._send({"event": "stop"})
            self._subscription.finish()

    def _runtime(self, block_hash: bytes) -> dict[str, object]:
        try:
            return {"type": "valid", "spec": runtime_json(self._context.chain.version(block_hash))}
        except ChainRefusal as refusal:
            return {"type": "invalid", "error": str(refusal)}

    def _send(self, event: Event) -> None:
        self._subscription.send(msgspec.json.encode(event))
