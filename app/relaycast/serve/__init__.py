"""``relaycast serve``: the HTTP application, who may use it, its limits, and the live page.

The package is called like the function of ``import relaycast as rc``: ``rc.serve("oracle")`` is ``in_process.serve``.
"""

import sys
from contextlib import AbstractContextManager
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relaycast.serve.in_process import ServedNetwork


class _Callable(ModuleType):
    """This package; a call serves a scenario."""

    def __call__(
        self, scenario: str | PathLike[str] = "oracle", **options: str | int
    ) -> "AbstractContextManager[ServedNetwork]":
        from relaycast.serve.in_process import serve  # noqa: PLC0415 - loads the server

        return serve(scenario, **options)  # type: ignore[arg-type]


sys.modules[__name__].__class__ = _Callable
