"""What can be wrong with a runtime or with a call of it.

::

    WasmError
    ├── NotARuntime           the bytes are no WebAssembly that can be run
    ├── MissingExport         the runtime has no such method
    ├── BlockRefused          a block that the runtime does not build or accept
    └── CallFailed            a call that gave no answer, with what the runtime logged
        ├── RuntimePanicked       it trapped: its own panic, or a fault of its code
        ├── MissingHostFunction   it called a host function that is not there
        ├── HostFault             it called one with what no such function takes
        ├── CallTookTooLong
        └── MemoryExhausted
"""

from relaycast_trie.exceptions import RelaycastError

MOST_SHOWN = 1_000
"""Characters of a reason, which a runtime may give, that stand in an error's text."""


class WasmError(RelaycastError):
    """Something is wrong with a runtime or with a call of it."""


class NotARuntime(WasmError, message="no runtime: {reason}"):
    """Bytes that are no runtime, and why."""

    reason: str


class MissingExport(WasmError, message="the runtime exports no {name}"):
    """A method that the runtime does not export."""

    name: str


class BlockRefused(WasmError, message="the block is refused: {reason}"):
    """A block that is not built or not accepted, and why; ``log`` are the lines that the runtime logged."""

    reason: str
    log: tuple[str, ...] = ()


class CallFailed(WasmError):
    """A call of ``method`` gave no answer; ``log`` are the lines that the runtime logged before."""

    method: str
    reason: str
    log: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = " ".join(self.reason.splitlines())
        return f"{self.method} failed: {said if len(said) <= MOST_SHOWN else f'{said[:MOST_SHOWN]}...'}"


class RuntimePanicked(CallFailed):
    """The runtime trapped; the ``reason`` is its own panic message where it gave one."""


class MissingHostFunction(CallFailed):
    """The runtime called a host function that is not there; the ``reason`` names it."""


class HostFault(CallFailed):
    """The runtime called a host function with what no such function takes."""


class CallTookTooLong(CallFailed):
    """The call was stopped at its limit of time."""


class MemoryExhausted(CallFailed):
    """The call asked for more memory than it may have."""
