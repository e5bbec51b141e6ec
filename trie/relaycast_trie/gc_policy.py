"""When the cyclic garbage collector is off: in long stretches of work over large, lasting states.

Nothing in a block's work is a cycle that reference counts would not free; looking for some takes a fifth of the time.
The compiler of kernels keeps nearly all that it makes; there it is a twelfth.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend collections; the next one finds what these would have found."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
