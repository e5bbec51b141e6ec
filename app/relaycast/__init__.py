"""relaycast: see what publish-subscribe over the relay chain costs before you build it.

``Network`` is the way in; it is loaded when it is first asked for, so that small commands start at once.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaycast import predict
    from relaycast.network import Feed, Network, Publisher, Reader, Run

__version__ = "0.1.0"

_FACES = ("Feed", "Network", "Publisher", "Reader", "Run")


def __getattr__(name: str) -> Any:
    if name in _FACES:
        from relaycast import network  # noqa: PLC0415 - loads every room

        return getattr(network, name)
    if name == "predict":
        return import_module("relaycast.predict")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return __all__


__all__ = ["Feed", "Network", "Publisher", "Reader", "Run", "__version__", "predict"]
