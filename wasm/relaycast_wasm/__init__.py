"""Real runtimes: WebAssembly that a chain's developers compiled, run as a chain of the network, offline.

Needs the extra ``wasm``. ``WasmRuntime`` loads and calls one, ``OverlayedChanges`` is the storage that it sees, and
``host`` holds the functions that it imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_PLACES = {
    "Limits": "engine.limits",
    "OverlayedChanges": "overlay",
    "RuntimeAnswer": "engine.limits",
    "RuntimeVersion": "runtime_version",
    "StateBacking": "overlay",
    "WasmRuntime": "runtime",
}
"""Modules of the names above that are not in ``exceptions``."""


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: reading a runtime's version takes no WebAssembly engine."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'exceptions')}"), name)
