"""Calls of a chain's runtime over the state of its head: what clients and authors ask between blocks."""

from collections.abc import Sequence
from hashlib import blake2b

from relaycast_collator.header import DigestItem, Header
from relaycast_pallets.frame.state import State
from relaycast_trie.scale import encode_u8
from relaycast_wasm.blocks.block_builder import BlockBuilder
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits, RuntimeAnswer
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.overlay import OverlayedChanges, StateBacking
from relaycast_wasm.runtime import WasmRuntime

EXTERNAL = 2
"""Where a transaction comes from that somebody sends (``TransactionSource::External``)."""


class RuntimeCalls:
    """A chain's ``runtime`` and ``state``; who runs the chain says what its ``head`` is."""

    head: Header

    def __init__(self, runtime: WasmRuntime, state: State, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.runtime = runtime
        self.state = state
        self.limits = limits
        self.environment = HostEnvironment(seed=state.root)

    def call(self, method: str, data: bytes = b"", *, overlay: OverlayedChanges | None = None) -> RuntimeAnswer:
        """Call a method over the state of the head; what it writes goes into the ``overlay`` or is lost.

        Raises what ``WasmRuntime.call`` does.
        """
        seen = self.overlay() if overlay is None else overlay
        return self.runtime.call(method, data, seen, limits=self.limits, environment=self.environment)

    def begin(self, parent: Header, digest: Sequence[DigestItem] = ()) -> BlockBuilder:
        """Begin a block on ``parent``, whose state stands here; raises ``BlockRefused``."""
        return BlockBuilder(self.call, self.overlay(), parent, digest=digest)

    def overlay(self) -> OverlayedChanges:
        """Return storage for a call: the state, and nothing written over it; the size of its proof can be asked for."""
        return OverlayedChanges(StateBacking(self.state), recording=True)

    def validate_transaction(self, extrinsic: bytes, *, source: int = EXTERNAL) -> bytes:
        """Return SCALE ``TransactionValidity`` of an extrinsic on the head."""
        version = self.runtime.version.apis.get(api_id("TaggedTransactionQueue"), 1)
        data = extrinsic if version < 2 else encode_u8(source) + extrinsic
        if version >= 3:
            data += self.head.hash
        return self.call("TaggedTransactionQueue_validate_transaction", data).output

    def dry_run(self, extrinsic: bytes) -> bytes:
        """Return the ``ApplyExtrinsicResult`` that an extrinsic would give in SCALE; nothing is kept."""
        return self.call("BlockBuilder_apply_extrinsic", extrinsic).output

    def account_nonce(self, account: bytes) -> int:
        """Return the nonce of an account's next transaction."""
        return int.from_bytes(self.call("AccountNonceApi_account_nonce", account).output, "little")


def api_id(name: str) -> bytes:
    """Return the 8 bytes under which a runtime lists one of its APIs."""
    return blake2b(name.encode(), digest_size=8).digest()
