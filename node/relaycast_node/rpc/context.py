"""What the methods of one chain work with: the chain, the clock of all chains, and feeds that are encoded once."""

from collections.abc import Callable

import msgspec

from relaycast_node.chain.exceptions import ChainRefusal
from relaycast_node.rpc.chain_protocols import BlockFace, ChainFace, Changes, ClockFace, Disconnect, StateFace
from relaycast_node.rpc.header_json import header_json, hexed
from relaycast_node.rpc.proof_tracker import ProofTracker
from relaycast_node.rpc.rpc_error import execution_failed, state_discarded, unknown_block
from relaycast_node.rpc.session import Subscription
from relaycast_node.rpc.version_json import version_json
from relaycast_pallets.frame.state import StateDiscarded

NODE_NAME = "relaycast"


Heard = Callable[[BlockFace], None]


class HeadFeed:
    """Headers of blocks for all who subscribed to them; a header is encoded once, however many there are.

    ``connect`` lets a callback hear of the blocks.
    """

    def __init__(self, connect: Callable[[Heard], Disconnect]) -> None:
        self._connect = connect
        self._subscriptions: dict[str, Subscription] = {}
        self._disconnect: Disconnect | None = None

    def join(self, subscription: Subscription) -> None:
        """Send every block from now on to a subscription, until it is closed."""
        self._subscriptions[subscription.id] = subscription
        subscription.on_close(lambda: self._leave(subscription))
        if self._disconnect is None:
            self._disconnect = self._connect(self._hear)

    def _leave(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription.id, None)
        if not self._subscriptions and self._disconnect is not None:
            disconnect, self._disconnect = self._disconnect, None
            disconnect()

    def _hear(self, block: BlockFace) -> None:
        data = msgspec.json.encode(header_json(block.header))
        for subscription in tuple(self._subscriptions.values()):
            subscription.send(data)


class RpcContext:
    """One chain as its methods see it; ``clock`` moves all chains."""

    def __init__(
        self, chain: ChainFace, clock: ClockFace, proofs: ProofTracker, method_names: list[str], *, version: str
    ) -> None:
        self.chain = chain
        self.clock = clock
        self.proofs = proofs
        self.method_names = method_names
        self.node_version = version
        self._metadata = b"", ""
        self.imported_heads = HeadFeed(chain.new_heads.connect)
        self.best_heads = HeadFeed(lambda hear: self.follow_best(lambda block, _: hear(block)))
        self.finalized_heads = HeadFeed(lambda hear: chain.finalized_heads.connect(lambda final: hear(final.block)))

    def follow_best(self, hear: Callable[[BlockFace, Changes], None]) -> Disconnect:
        """Let ``hear`` know each best block, and what it changed in the top trie of the best block before it."""
        ends = [
            self.chain.new_heads.connect(lambda block: hear(block, block.changes)),
            self.chain.moved_heads.connect(lambda move: hear(move.block, move.changes)),
        ]

        def disconnect() -> None:
            for end in ends:
                end()

        return disconnect

    def metadata_text(self, block_hash: bytes | None) -> str:
        """Return the metadata at a block in hexadecimal; written once, for clients ask for it first."""
        at = self.block(block_hash).hash
        try:
            data = self.chain.metadata(at)
        except ChainRefusal as refusal:
            raise execution_failed(refusal) from None
        if data is not self._metadata[0]:
            self._metadata = data, hexed(data)
        return self._metadata[1]

    def version(self, block_hash: bytes | None) -> dict[str, object]:
        """Return what the chain's code says of itself at a block, in JSON; raises ``RpcError``."""
        at = self.block(block_hash).hash
        try:
            return version_json(self.chain.version(at))
        except ChainRefusal as refusal:
            raise execution_failed(refusal) from None

    def call(self, method: str, data: bytes, block_hash: bytes | None) -> bytes:
        """Return what a method of the chain's code answers at a block; raises ``RpcError``."""
        at = self.block(block_hash).hash
        try:
            return self.chain.call(method, data, at)
        except ChainRefusal as refusal:
            raise execution_failed(refusal) from None

    def block(self, block_hash: bytes | None) -> BlockFace:
        """Return a block, the best one for ``None``; raises ``RpcError`` for one that is not there."""
        found = self.chain.best if block_hash is None else self.chain.block(block_hash)
        if found is None:
            assert block_hash is not None
            raise unknown_block(block_hash)
        return found

    def state(self, block_hash: bytes | None) -> StateFace:
        """Return the state that a block left; raises ``RpcError`` where it is discarded."""
        at = self.block(block_hash).hash
        try:
            return self.chain.state_at(at)
        except StateDiscarded:
            raise state_discarded(at) from None
