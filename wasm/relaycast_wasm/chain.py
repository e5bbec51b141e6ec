"""A chain whose blocks a runtime builds, over a ``State``: initialize, inherents, extrinsics, finalize.

Law: a block is kept whole or not at all. Nothing is written before the runtime's header names the very root that its
changes lead to. When a block writes new ``:code``, the next one is that code's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from relaycast_collator.header import SEAL, DigestItem, Header
from relaycast_pallets.frame.state import State
from relaycast_trie import Recorder, StorageProof
from relaycast_trie.scale import encode_vec
from relaycast_wasm.blocks.applied import RefusedExtrinsic
from relaycast_wasm.blocks.inherents import TIMESTAMP, Inherents
from relaycast_wasm.blocks.runtime_calls import RuntimeCalls
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits
from relaycast_wasm.exceptions import BlockRefused, CallFailed, NotARuntime
from relaycast_wasm.overlay import Name, OverlayedChanges, Values
from relaycast_wasm.runtime import WasmRuntime
from relaycast_xcm.checkpoint import CheckpointRefused

CODE = b":code"

Load = Callable[[bytes], WasmRuntime]

Ask = Callable[[Header, OverlayedChanges], None]

Seal = Callable[[Header], DigestItem]
"""Seals a header that is complete but for its seal."""


@dataclass(frozen=True, slots=True)
class BuiltBlock:
    """A block that is part of its chain now: header and body, and what it read and wrote."""

    header: Header
    extrinsics: tuple[bytes, ...]
    """Each with its length in front, as a ``Vec<Extrinsic>`` holds them."""

    results: tuple[bytes, ...]
    """What applying each gave, an ``ApplyExtrinsicResult`` in SCALE."""

    parent_root: bytes
    """The state root that the block stands on."""

    own_proof: StorageProof
    """The nodes of the chain's own state that the block reads and rewrites."""

    reads: Mapping[Name, set[bytes]]
    seeks: Mapping[Name, set[bytes]]
    changes: Mapping[Name, Values]
    refused: tuple[RefusedExtrinsic, ...] = ()
    log: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<BuiltBlock #{self.header.number} of {len(self.extrinsics)} extrinsics>"


class RuntimeChain(RuntimeCalls):
    """The chain of a ``runtime`` whose ``state`` is that of the block ``head``, the genesis unless given.

    ``load`` makes a runtime of new code when a block upgrades it.
    """

    def __init__(
        self,
        runtime: WasmRuntime,
        state: State,
        head: Header | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        load: Load = WasmRuntime.load,
    ) -> None:
        super().__init__(runtime, state, limits=limits)
        self.head = Header(bytes(32), 0, state.root) if head is None else head
        if self.head.state_root != state.root:
            raise ValueError(f"the head has the state root 0x{self.head.state_root.hex()}, got 0x{state.root.hex()}")
        self._load = load
        state.migrate(runtime.version.trie_version)

    def build_block(
        self,
        inherents: Inherents,
        extrinsics: Sequence[bytes] = (),
        *,
        digest: Sequence[DigestItem] = (),
        seal: Seal | None = None,
        ask: Ask | None = None,
    ) -> BuiltBlock:
        """Build the next block and keep it, its header sealed where ``seal`` is given; raises ``BlockRefused``.

        An extrinsic that the runtime refuses is left out and stands in ``refused``; so do all of them where the block
        takes inherents alone. ``ask`` sees what the block leaves before it is kept; when it raises, the block is not.
        """
        self.environment.timestamp_ms = int.from_bytes(inherents.get(TIMESTAMP, b""), "little")
        builder = self.begin(self.head, digest)
        builder.apply_inherents(inherents)
        builder.apply_waiting(extrinsics)
        header = builder.finalize()
        self._check_place(header)
        if ask is not None:
            with builder.transaction():
                ask(header, builder.overlay)
        if seal is not None:
            header = replace(header, digest=(*header.digest, seal(header)))
        body, results = tuple(it.extrinsic for it in builder.body), tuple(it.result for it in builder.body)
        return self._kept(header, body, results, builder.overlay, tuple(builder.refused), tuple(builder.log))

    def execute_block(self, header: Header, extrinsics: Sequence[bytes]) -> OverlayedChanges:
        """Let the runtime check a block on the head, and return what it wrote; nothing is kept.

        Seals of the ``header`` are left out. Raises ``BlockRefused``.
        """
        self._check_place(header)
        overlay = self.overlay()
        block = without_seals(header).encode() + encode_vec(extrinsics)
        try:
            self.call("Core_execute_block", block, overlay=overlay)
        except CallFailed as error:
            raise BlockRefused(str(error), error.log) from error
        return overlay

    def import_block(self, header: Header, extrinsics: Sequence[bytes]) -> BuiltBlock:
        """Take over a block that was built elsewhere, once the runtime accepts it; raises ``BlockRefused``."""
        overlay = self.execute_block(header, extrinsics)
        return self._kept(header, tuple(extrinsics), (), overlay, (), ())

    def stand_at(self, head: Header) -> None:
        """Go on from another block, whose state the chain's ``state`` is now, with the code that this holds.

        Raises ``CheckpointRefused`` where it is not, and ``NotARuntime``.
        """
        if head.state_root != self.state.root:
            raise CheckpointRefused(f"its head has the state root 0x{head.state_root.hex()}")
        code = self.state.get(CODE)
        if code is not None and code != self.runtime.code:
            self.runtime = self._load(code)
        self.head = head
        self.state.migrate(self.runtime.version.trie_version)

    def _check_place(self, header: Header) -> None:
        if header.number != self.head.number + 1:
            raise BlockRefused(f"block {header.number} does not follow on block {self.head.number}")
        if header.parent_hash != self.head.hash:
            named = f"0x{header.parent_hash.hex()}"
            raise BlockRefused(
                f"its header has the parent {named}, block {self.head.number} is 0x{self.head.hash.hex()}"
            )

    def _kept(
        self,
        header: Header,
        extrinsics: tuple[bytes, ...],
        results: tuple[bytes, ...],
        overlay: OverlayedChanges,
        refused: tuple[RefusedExtrinsic, ...],
        log: tuple[str, ...],
    ) -> BuiltBlock:
        root = overlay.root(self.runtime.version.trie_version)
        if root != header.state_root:
            named = header.state_root.hex()
            raise BlockRefused(f"its header has the state root 0x{named}, its changes lead to 0x{root.hex()}", log)
        changes = overlay.changes()
        upgraded = self._upgraded(changes.get(None, {}))
        parent_root = self.state.root
        proof = seal_state(self.state, overlay, changes)
        assert self.state.root == root, "sealing leads to the root that was foretold"
        self.head = header
        if upgraded is not None:
            self.runtime = upgraded
            self.state.migrate(upgraded.version.trie_version)
        seen = overlay.reads, overlay.seeks, changes
        return BuiltBlock(header, extrinsics, results, parent_root, proof, *seen, refused, log)

    def _upgraded(self, written: Values) -> WasmRuntime | None:
        code = written.get(CODE)
        if CODE not in written or code == self.runtime.code:
            return None
        if code is None:
            raise BlockRefused("it removes the runtime's code")
        try:
            return self._load(code)
        except NotARuntime as error:
            raise BlockRefused(f"it upgrades the runtime: {error}") from None

    def __repr__(self) -> str:
        return f"<RuntimeChain {self.runtime!r} at #{self.head.number}>"


def seal_state(state: State, overlay: OverlayedChanges, changes: Mapping[Name, Values]) -> StorageProof:
    """Write ``changes`` into the state and seal it; return the nodes that a validator needs for the same block."""
    touched = Recorder()
    state.commit(changes=changes, reads=overlay.reads, seeks=overlay.seeks, tried=overlay.tried, recorder=touched)
    return StorageProof(touched.nodes.values())


def without_seals(header: Header) -> Header:
    """Return a header as the runtime built it, before its author sealed it."""
    return replace(header, digest=tuple(log for log in header.digest if log.variant != SEAL))
