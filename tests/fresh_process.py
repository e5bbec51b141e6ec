"""Work in a process of its own, and the memory that it holds there.

Law: memory is weighed in a fresh process alone. What ran before leaves a worker of pytest with millions of objects. Its
allocator keeps tens of megabytes of free memory, even from a list of those objects. Both would be weighed too.
"""

import ctypes
import gc
import logging
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from typing import NamedTuple, TypeVar

import psutil

Result = TypeVar("Result")


class Weight(NamedTuple):
    """What a process holds: objects that the collector knows, and bytes of resident memory."""

    objects: int
    resident: int


def in_fresh_process(work: Callable[[], Result]) -> Result:
    """Return what ``work`` returns in a process of its own; there it may log no error.

    ``work`` is pickled: a function of a module beside the tests, not of a test's own, or a ``partial`` of one.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_without_errors, work).result()


def settled_weight() -> Weight:
    """Return what this process holds when garbage is collected and free memory is given back to the system."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    return Weight(len(gc.get_objects()), psutil.Process().memory_info().rss)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _without_errors(work: Callable[[], Result]) -> Result:
    errors = _Errors()
    logging.getLogger().addHandler(errors)
    result = work()
    assert errors.messages == []
    return result
