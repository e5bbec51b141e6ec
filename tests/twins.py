"""Marks the tests that hold a kernel against its twin: a slow function from the definition, or the plain engine."""

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def twin_of(*kernels: str) -> Callable[[Test], Test]:
    """Say which kernels, as ``module.name``, a test holds against their twins; ``test_kernel_twins`` reads this."""
    assert kernels
    return lambda test: test
