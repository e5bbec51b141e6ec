"""relaycast: see what publish-subscribe over the relay chain costs before you build it.

``Network`` is the way in; it is loaded when it is first asked for, so that small commands start at once.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaycast import notebook
from relaycast.version import __version__

if TYPE_CHECKING:
    from relaycast import choices, predict
    from relaycast.feed import Feed
    from relaycast.network import Network, Publisher, Reader
    from relaycast.pytest_fixtures import PovSnapshot
    from relaycast.real_runtime import RealRuntime
    from relaycast.run import Run
    from relaycast.serve.in_process import ServedNetwork, serve

notebook.register()

_MODULES = ("choices", "predict", "serve")
_FACES = {
    "Feed": "feed",
    "Network": "network",
    "PovSnapshot": "pytest_fixtures",
    "Publisher": "network",
    "Reader": "network",
    "RealRuntime": "real_runtime",
    "Run": "run",
    "ServedNetwork": "serve.in_process",
}
"""Where everything else stands."""


def __getattr__(name: str) -> Any:
    if name in _FACES:
        return getattr(import_module(f"relaycast.{_FACES[name]}"), name)
    if name in _MODULES:
        return import_module(f"relaycast.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Feed",
    "Network",
    "PovSnapshot",
    "Publisher",
    "Reader",
    "RealRuntime",
    "Run",
    "ServedNetwork",
    "__version__",
    "choices",
    "predict",
    "serve",
]
