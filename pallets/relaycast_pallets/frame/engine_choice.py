"""When a state's tries move from one engine to the other: as soon as the time lost by staying would pay for the move.

Losing as much by waiting as a move costs bounds the total at twice the best in hindsight, and whoever seals little
never waits for the compiler. Only counts decide, and what lies compiled on disk, no clock.
"""

import math

from relaycast_trie.engine import (
    Engine,
    check_engine,
    kernels_are_compiled,
    kernels_are_loaded,
    kernels_can_be_compiled,
)

PLAIN_US_A_TRIE, PLAIN_US_A_KEY = 15, 25
"""What a seal takes for every trie and for every key that it changes, with plain tries."""

ARRAY_US_A_SEAL, ARRAY_US_A_KEY = 38, 3
"""The same with array tries, which take all tries together."""

LOAD_US = 1_500_000
"""What loading the kernels takes, where this process has not done it."""

COMPILE_US = 30_000_000
"""What compiling them takes before that, where no earlier run has done it: CPU time, and more on a busy machine."""

PLAIN_LOAD_US_A_KEY, ARRAY_LOAD_US_A_KEY = 6, 2
"""What reading a key into tries takes. Going to arrays reads all keys; going back reads none."""


class EngineChoice:
    """What one state has sealed, weighed against what it would have taken otherwise."""

    def __init__(self, engine: Engine) -> None:
        check_engine(engine)
        self.engine = engine
        self._lost_us = 0

    def note(self, tries: int, keys: int, *, in_arrays: bool) -> None:
        """Count a seal with its number of changed ``keys`` and of ``tries``."""
        plain = PLAIN_US_A_TRIE * tries + PLAIN_US_A_KEY * keys
        gain = plain - (ARRAY_US_A_SEAL + ARRAY_US_A_KEY * keys)
        self._lost_us = max(0, self._lost_us + (-gain if in_arrays else gain))

    def loads_in_arrays(self, keys: int) -> bool:
        """Return whether that many keys are better read into arrays."""
        gain = (PLAIN_LOAD_US_A_KEY - ARRAY_LOAD_US_A_KEY) * keys
        return self.engine == "array" or (self.engine == "auto" and gain > _price())

    def is_restless(self, *, in_arrays: bool) -> bool:
        """Return whether ``moves`` is worth asking."""
        if self.engine != "auto":
            return self.engine == "array" and not in_arrays
        return self._lost_us > _price()

    def moves(self, keys: int) -> bool:
        """Return whether tries with that many keys change engine now; they go back only when that pays too."""
        if self.engine == "auto" and self._lost_us <= _price() + ARRAY_LOAD_US_A_KEY * keys:
            return False
        self._lost_us = 0
        return True


def _price() -> float:
    if not kernels_can_be_compiled():
        return math.inf
    if kernels_are_loaded():
        return 0
    return LOAD_US if kernels_are_compiled() else LOAD_US + COMPILE_US
