"""A real runtime as the code of a served chain (``ChainCode``): every method that it exports, at every block.

Law: a call runs on the state that a block left and leaves no trace. Which runtime answers follows from ``:code`` at
that block, so that a chain that was upgraded still answers for its old blocks with its old runtime.
"""

from dataclasses import replace
from hashlib import blake2b
from typing import Any

from relaycast.serve.past_backing import PastBacking
from relaycast_collator.header import Header
from relaycast_node.chain.code import CODE, BlockState, ChainStates, CodeVersion
from relaycast_node.chain.exceptions import CodeRefused, MissingMethod, UnknownBlock
from relaycast_node.extrinsic.extrinsic import is_bare
from relaycast_node.extrinsic.validity import ValidTransaction, decode_validity
from relaycast_node.extrinsic.validity_errors import TransactionValidityError
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_u8
from relaycast_wasm import MissingExport, OverlayedChanges, RuntimePanicked, WasmError, WasmRuntime
from relaycast_wasm.blocks.runtime_calls import RuntimeCalls

TRANSACTION_QUEUE = blake2b(b"TaggedTransactionQueue", digest_size=8).digest()

IN_BLOCK, EXTERNAL = 0, 2
"""Where a transaction comes from (``TransactionSource``)."""

RUNTIMES_KEPT = 4
"""Runtimes of one chain that stay loaded beside that of its newest block."""

SECONDS_OF_A_CALL = 10.0
"""How long a client's call may run: every other client waits meanwhile."""

NOT_KNOWN_YET = bytes(32)
"""What a header has for roots before its block is built."""


class RuntimeCode:
    """The runtimes of one ``chain``."""

    def __init__(self, chain: RuntimeCalls) -> None:
        self.chain = chain
        self._limits = replace(chain.limits, seconds=SECONDS_OF_A_CALL)
        self._runtimes: dict[bytes, WasmRuntime] = {}
        self._metadata: dict[bytes, bytes] = {}
        self._states: ChainStates | None = None

    def follow(self, chain: ChainStates) -> None:
        self._states = chain

    def version(self, at: BlockState) -> CodeVersion:
        found = self.runtime(at).version
        return CodeVersion(
            spec_name=found.spec_name,
            impl_name=found.impl_name,
            authoring_version=found.authoring_version,
            spec_version=found.spec_version,
            impl_version=found.impl_version,
            apis=tuple(found.apis.items()),
            transaction_version=found.transaction_version,
            state_version=found.state_version,
        )

    def metadata(self, at: BlockState) -> bytes:
        code = self._code(at)
        known = self._metadata.get(code)
        if known is None:
            known = self._metadata[code] = ScaleReader(self.call("Metadata_metadata", b"", at)).bytes_()
            _forget_oldest(self._metadata)
        return known

    def call(self, method: str, data: bytes, at: BlockState) -> bytes:
        return self._run(method, data, at, self.overlay(at))

    def dry_run(self, data: bytes, at: BlockState) -> bytes:
        overlay = self.overlay(at)
        self._initialize(at, overlay)
        return self._run("BlockBuilder_apply_extrinsic", data, at, overlay)

    def view(self, at: BlockState) -> "RuntimeView":
        assert self._states is not None, "a chain begins at its genesis"
        return RuntimeView(self, self._states, at)

    def check_value(self, key: bytes, value: bytes | None) -> None:
        """Accept everything: only the runtime knows what a value means."""

    def take_over(self, code: bytes | None) -> None:
        if code is None:
            raise ValueError("a chain has code: 0x3a636f6465 cannot be removed")
        try:
            self.chain.runtime = self._loaded(code)
        except WasmError as error:
            raise ValueError(f"0x3a636f6465: {error}") from None
        self.chain.state.migrate(self.chain.runtime.version.trie_version)

    def validity(self, data: bytes, at: BlockState, *, source: int = EXTERNAL) -> bytes:
        """Return SCALE ``TransactionValidity`` of an extrinsic in the next block; raises ``CodeRefused``."""
        version, overlay = self.runtime(at).version.apis.get(TRANSACTION_QUEUE, 0), self.overlay(at)
        if version < 3:  # runtimes began the block themselves from version 3 on
            self._initialize(at, overlay)
        asked = data if version < 2 else encode_u8(source) + data
        if version >= 3:
            asked += at.hash
        return self._run("TaggedTransactionQueue_validate_transaction", asked, at, overlay)

    def runtime(self, at: BlockState) -> WasmRuntime:
        """Return the runtime at a block; raises ``CodeRefused`` where its code is none."""
        try:
            return self._loaded(self._code(at))
        except WasmError as error:
            raise CodeRefused(str(error)) from None

    def overlay(self, at: BlockState) -> OverlayedChanges:
        """Return storage for a call on the state that a block left."""
        return OverlayedChanges(PastBacking(at, self.chain.state))

    def _initialize(self, at: BlockState, overlay: OverlayedChanges) -> None:
        header = Header(at.hash, at.header.number + 1, NOT_KNOWN_YET, NOT_KNOWN_YET)
        self._run("Core_initialize_block", header.encode(), at, overlay)

    def _run(self, method: str, data: bytes, at: BlockState, overlay: OverlayedChanges) -> bytes:
        runtime = self.runtime(at)
        try:
            return runtime.call(method, data, overlay, limits=self._limits).output
        except MissingExport:
            raise MissingMethod(method) from None
        except RuntimePanicked as error:
            raise CodeRefused(f"Execution aborted due to panic: {error.reason}") from None
        except (WasmError, StateDiscarded) as error:
            raise CodeRefused(f"Other: {error}") from None

    def _loaded(self, code: bytes) -> WasmRuntime:
        """Return the runtime of ``code``, loaded once; raises ``WasmError``."""
        if code == self.chain.runtime.code:
            return self.chain.runtime
        known = self._runtimes.get(code)
        if known is None:
            known = self._runtimes[code] = WasmRuntime.load(code)
            _forget_oldest(self._runtimes)
        return known

    def _code(self, at: BlockState) -> bytes:
        code = at.state.get(CODE)
        if code is None:
            raise CodeRefused("Other: Runtime code not found in the state")
        return code


class RuntimeView:
    """A chain with a runtime as the pool sees it, after the block ``at`` (``PoolView``)."""

    def __init__(self, code: RuntimeCode, chain: ChainStates, at: BlockState) -> None:
        self._code = code
        self._chain = chain
        self._at = at

    @property
    def block_number(self) -> int:
        return self._at.header.number

    def block_hash(self, number: int) -> bytes | None:
        return self._chain.hash_of(number)

    def nonce(self, account: bytes) -> int:
        return int.from_bytes(self._code.call("AccountNonceApi_account_nonce", account, self._at), "little")

    def judge(self, data: bytes) -> ValidTransaction:
        return decode_validity(self._code.validity(data, self._at))

    def provided_by(self, data: bytes) -> tuple[bytes, ...]:
        """Return what the runtime said of an extrinsic of this block when it was still to come."""
        if is_bare(data):
            return ()
        try:
            parent = self._chain.state_of(self._at.header.parent_hash)
            return decode_validity(self._code.validity(data, parent, source=IN_BLOCK)).provides
        except (UnknownBlock, CodeRefused, TransactionValidityError, CodecError):
            return ()


def _forget_oldest(kept: dict[bytes, Any]) -> None:
    while len(kept) > RUNTIMES_KEPT:
        del kept[next(iter(kept))]
