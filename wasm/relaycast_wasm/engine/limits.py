"""What one call of a runtime may take, and what it gives."""

from dataclasses import dataclass

EXTRA_PAGES = 2_048
"""Pages of 64 KiB that a heap has beside what the code asks for where the state says nothing: 128 MiB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take."""

    seconds: float = 30.0
    memory_pages: int = EXTRA_PAGES
    """Pages that its heap has where the state does not say."""

    output_bytes: int = 64 << 20
    read_bytes: int = 1 << 30
    """How many bytes it may hand to host functions in all, so that they keep no more than that."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """What a call gave: SCALE, and the lines that the runtime logged."""

    output: bytes
    log: tuple[str, ...] = ()
