"""The code of a modelled chain: the pallets of its executive, its metadata, and the runtime APIs that clients call."""

from relaycast_node.chain.code import BlockState, ChainStates, CodeVersion
from relaycast_node.chain.exceptions import BadCallInput, CodeRefused
from relaycast_node.chain.executive import Executive, View
from relaycast_node.chain.modelled_calls import METADATA_VERSIONS, call_modelled, version_of
from relaycast_node.chain.past_view import PastView
from relaycast_node.chain.trial import Fees, dry_run
from relaycast_node.metadata.runtime import Runtime
from relaycast_node.metadata.runtime_metadata import encode_metadata
from relaycast_trie.exceptions import CodecError


class ModelledCode:
    """The same in all blocks (``ChainCode``); its pallets stand as the newest block left them."""

    def __init__(self, executive: Executive) -> None:
        self.executive = executive
        self._metadata: dict[int, bytes] = {}
        self._chain: ChainStates | None = None

    @property
    def runtime(self) -> Runtime:
        return self.executive.runtime

    @property
    def fees(self) -> Fees:
        return Fees(self.executive)

    def follow(self, chain: ChainStates) -> None:
        newest = chain.newest()
        self._chain = chain
        self.executive.genesis_hash = chain.genesis_hash
        self.executive.head = (newest.header.number, newest.hash)

    def version(self, at: BlockState) -> CodeVersion:  # noqa: ARG002
        return version_of(self.runtime.names)

    def metadata(self, at: BlockState) -> bytes:  # noqa: ARG002
        return self.metadata_in(METADATA_VERSIONS[0])

    def metadata_in(self, version: int) -> bytes:
        """Return the metadata in a version; ``ValueError`` for one that there is not."""
        known = self._metadata.get(version)
        if known is None:
            known = self._metadata[version] = encode_metadata(self.runtime, version)
        return known

    def call(self, method: str, data: bytes, at: BlockState) -> bytes:
        return call_modelled(self, method, data, at.hash)

    def dry_run(self, data: bytes, at: BlockState) -> bytes:
        """Return what an extrinsic would come to in the block after the newest: earlier states cannot run calls."""
        if at.hash != self._states.newest().hash:
            raise CodeRefused("calls run on the best block's state alone")
        try:
            return dry_run(self.executive, data)
        except CodecError as error:
            raise BadCallInput("BlockBuilder_apply_extrinsic", str(error)) from None

    def view(self, at: BlockState) -> View:
        if at.hash == self._states.newest().hash:
            return self.executive.view()
        return PastView(self.executive, at.state, at.header.number, self._states.hash_of)

    def check_value(self, key: bytes, value: bytes | None) -> None:
        self.runtime.check_value(key, value)

    def take_over(self, code: bytes | None) -> None:
        """Leave the pallets as they are: what stands under ``:code`` runs nothing."""

    def view_at(self, block_hash: bytes) -> View:
        """Return the chain as transactions are judged by after a block; raises ``UnknownBlock``."""
        return self.view(self._states.state_of(block_hash))

    @property
    def _states(self) -> ChainStates:
        assert self._chain is not None, "a chain begins at its genesis"
        return self._chain
