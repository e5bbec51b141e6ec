"""The terminal: colours and tables where a person looks, plain lines in a pipe and under ``NO_COLOR``."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaycast.refusal import plain

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 240
"""Columns of a table that no terminal limits."""

WIDE = 100
"""Columns from which a table has room to breathe."""


_HUSHED: list[bool] = []


@contextmanager
def hushed() -> Iterator[None]:
    """Let nothing come to the terminal for a while but errors."""
    _HUSHED.append(True)
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            yield
    finally:
        _HUSHED.pop()


def is_hushed() -> bool:
    """Return whether only errors are wanted."""
    return bool(_HUSHED)


def shows_progress() -> bool:
    """Return whether somebody looks at how far work is: not in a pipe, nor where only errors are wanted."""
    return sys.stderr.isatty() and not _HUSHED


def console(*, stderr: bool = False) -> "Console":
    """Return a console; in a pipe it neither colours nor wraps."""
    from rich.console import Console  # noqa: PLC0415 - slow to load, and --json needs none

    class Plain(Console):
        """A console on which names cannot give orders to the terminal; the styles are its own."""

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(plain(it) if isinstance(it, str) else it for it in objects), **options)

    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty()
    return Plain(file=stream, highlight=False, width=PIPE_WIDTH if piped else None, soft_wrap=piped)


def counted(count: int, thing: str, things: str = "") -> str:
    """Return ``count`` with the ``thing`` that is counted, of which there may be one."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def print_table(
    out: "Console", columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = (), title: str = ""
) -> None:
    """Print rows under their column names; the columns in ``right`` hold numbers."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    style = box.SIMPLE_HEAD if out.is_terminal else None
    gap = (0, 2 if out.width >= WIDE else 1, 0, 0)
    table = Table(
        box=style, title=Text(plain(title)) if title else None, title_justify="left", pad_edge=False, padding=gap
    )
    numbers = set(right)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    out.print(table)
