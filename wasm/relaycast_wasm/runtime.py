"""A runtime: its code, ready to be called. Every call is an instance of its own, with memory of its own."""

from functools import cached_property, partial

from relaycast_pallets.frame.state import State
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.code_blob import wasm_of
from relaycast_wasm.engine.callbacks import Callbacks, default_callbacks
from relaycast_wasm.engine.instances import Instances
from relaycast_wasm.engine.kept_modules import Place
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits, RuntimeAnswer
from relaycast_wasm.exceptions import MissingExport, NotARuntime, WasmError
from relaycast_wasm.host.environment import HostEnvironment
from relaycast_wasm.overlay import OverlayedChanges, StateBacking
from relaycast_wasm.runtime_version import RuntimeVersion, embedded_version

__all__ = ["DEFAULT_LIMITS", "Limits", "RuntimeAnswer", "WasmRuntime", "empty_overlay"]

HEAP_PAGES = b":heappages"
"""Where a state says how many pages a heap has: a u64."""

DEEPEST_RUNTIME = 2
"""How many runtimes may run inside of one another, each asked for its version by the one around it."""

VERSION_SECONDS = 10.0


class WasmRuntime:
    """One runtime's code, compiled; use ``load``. It may be shared by threads: one call runs at a time."""

    def __init__(self, code: bytes, wasm: bytes, instances: Instances, *, kept: Place, depth: int) -> None:
        self.code = code
        self._wasm = wasm
        self._instances = instances
        self._kept = kept
        self._depth = depth

    @classmethod
    def load(
        cls, code: bytes, kept: Place = "user", *, callbacks: Callbacks | None = None, _depth: int = 0
    ) -> "WasmRuntime":
        """Return the runtime that ``code`` is, compressed or not; raises ``NotARuntime``.

        Its compiled form is kept in the folder ``kept``: by default in the user's, ``None`` for nowhere. ``callbacks``
        is the way to host functions, see ``engine.callbacks``.
        """
        wasm = wasm_of(code)
        return cls(code, wasm, Instances(wasm, kept, callbacks or default_callbacks()), kept=kept, depth=_depth)

    @cached_property
    def version(self) -> RuntimeVersion:
        """What the runtime says of itself: in a section of its code, or else when it is asked.

        Raises ``NotARuntime`` where that is no version.
        """
        embedded = embedded_version(self._wasm)
        if embedded is not None:
            return embedded
        try:
            return RuntimeVersion.decode(self._ask("Core_version"))
        except CodecError as error:
            raise NotARuntime(f"what Core_version answers is no version: {error}") from None

    @property
    def methods(self) -> frozenset[str]:
        """The names that can be called."""
        return self._instances.methods

    @property
    def missing_imports(self) -> list[str]:
        """The host functions that it imports and that are not there: calling one fails, nothing else does."""
        return self._instances.missing_imports

    @property
    def imports(self) -> list[str]:
        """The host functions that it imports."""
        return self._instances.imports

    @property
    def state_version(self) -> int:
        """How its state is written, 0 or 1."""
        return self.version.state_version

    def metadata(self) -> bytes:
        """Return the runtime's metadata, from its magic number on."""
        return ScaleReader(self._ask("Metadata_metadata")).bytes_()

    def call(
        self,
        method: str,
        data: bytes,
        overlay: OverlayedChanges,
        *,
        limits: Limits = DEFAULT_LIMITS,
        environment: HostEnvironment | None = None,
    ) -> RuntimeAnswer:
        """Call a method with SCALE ``data`` over the storage ``overlay``; raises ``MissingExport`` and ``CallFailed``.

        What the call wrote stays in the overlay, after a failure too: transactions are the caller's. Those that the
        runtime leaves open are rolled back.
        """
        if method not in self.methods:
            raise MissingExport(method)
        return self._instances.run(
            method,
            data,
            overlay,
            limits=limits,
            heap_pages=_heap_pages(overlay, limits),
            environment=environment or HostEnvironment(),
            version_of=partial(_version_of, kept=self._kept, depth=self._depth + 1),
        )

    def _ask(self, method: str) -> bytes:
        return self.call(method, b"", empty_overlay()).output

    def __repr__(self) -> str:
        return f"<WasmRuntime {self.version.spec_name}-{self.version.spec_version}>"


def empty_overlay() -> OverlayedChanges:
    """Return storage that holds nothing, for calls that read none."""
    return OverlayedChanges(StateBacking(State(window=1, engine="plain")))


def _heap_pages(overlay: OverlayedChanges, limits: Limits) -> int:
    """Return how many pages the heap has: what the state says, as long as it says a number."""
    found = overlay.backing.get(None, HEAP_PAGES)  # the host reads it: it is no part of the block's proof
    return limits.memory_pages if found is None or len(found) != 8 else int.from_bytes(found, "little")


def _version_of(code: bytes, *, kept: Place, depth: int) -> bytes | None:
    """Return what another runtime says of itself in SCALE; ``None`` where it cannot."""
    try:
        embedded = embedded_version(wasm_of(code))
        if embedded is not None:
            return embedded.encode()
        if depth > DEEPEST_RUNTIME:
            return None
        runtime = WasmRuntime.load(code, kept, _depth=depth)
        return runtime.call("Core_version", b"", empty_overlay(), limits=Limits(seconds=VERSION_SECONDS)).output
    except WasmError:
        return None
