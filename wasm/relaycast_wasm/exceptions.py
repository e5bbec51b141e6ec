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


class NotARuntime(WasmError):
    """Bytes that are no runtime, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"no runtime: {self.reason}"


class MissingExport(WasmError):
    """A method that the runtime does not export."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the runtime exports no {self.name}"


class BlockRefused(WasmError):
    """A block that is not built or not accepted, and why; ``log`` are the lines that the runtime logged."""

    def __init__(self, reason: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(reason, log)
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        return f"the block is refused: {self.reason}"


class CallFailed(WasmError):
    """A call of ``method`` gave no answer; ``log`` are the lines that the runtime logged before."""

    def __init__(self, method: str, reason: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(method, reason, log)
        self.method = method
        self.reason = reason
        self.log = log

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
