"""Real runtimes: WebAssembly that a chain's developers compiled, run as a chain of the network, offline.

Needs the extra ``wasm``. ``WasmRuntime`` loads and calls one, ``OverlayedChanges`` is the storage that it sees, and
``host`` holds the functions that it imports.
"""

from relaycast_wasm.engine.limits import Limits, RuntimeAnswer
from relaycast_wasm.exceptions import (
    CallFailed,
    CallTookTooLong,
    HostFault,
    MissingExport,
    MissingHostFunction,
    NotARuntime,
    RuntimePanicked,
    WasmError,
)
from relaycast_wasm.overlay import OverlayedChanges, StateBacking
from relaycast_wasm.runtime import WasmRuntime
from relaycast_wasm.runtime_version import RuntimeVersion

__all__ = [
    "CallFailed",
    "CallTookTooLong",
    "HostFault",
    "Limits",
    "MissingExport",
    "MissingHostFunction",
    "NotARuntime",
    "OverlayedChanges",
    "RuntimeAnswer",
    "RuntimePanicked",
    "RuntimeVersion",
    "StateBacking",
    "WasmError",
    "WasmRuntime",
]
