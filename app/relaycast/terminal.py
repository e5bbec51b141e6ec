"""The terminal: colours and tables where a person looks, plain lines in a pipe and under ``NO_COLOR``."""

import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from relaycast.refusal import plain

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 80
"""Columns of what is printed into a pipe, where ``COLUMNS`` does not say another number."""

LEAST_TEXT = 24
"""Columns that a text in a table keeps when it is wrapped."""


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
    """Return whether a progress bar is drawn: on a terminal, without ``NO_COLOR``, unless only errors are wanted."""
    return sys.stderr.isatty() and not _HUSHED and not os.environ.get("NO_COLOR")


def console(*, stderr: bool = False) -> "Console":
    """Return a console; in a pipe it has no colours."""
    from rich.console import Console  # noqa: PLC0415 - slow to load, and --json needs none

    class Plain(Console):
        """A console on which names cannot give orders to the terminal; the styles are its own."""

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(plain(it) if isinstance(it, str) else it for it in objects), **options)

    stream = sys.stderr if stderr else sys.stdout
    is_limited = stream.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return Plain(file=stream, highlight=False, width=None if is_limited else PIPE_WIDTH)


def say(text: str, *, hanging: int = 0, style: str = "") -> None:
    """Print a text, wrapped between words to the width of the terminal; later lines are indented by ``hanging``."""
    width = get_terminal_size((PIPE_WIDTH, 24)).columns
    indent = " " * hanging
    wrapped = "\n".join(
        textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
        for line in plain(text).splitlines()
    )
    if style:
        console().print(wrapped, style=style, markup=False, soft_wrap=True)
    else:
        print(wrapped, flush=True)


def counted(count: int, thing: str, things: str = "") -> str:
    """Return ``count`` with the ``thing`` that is counted, of which there may be one."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def print_table(
    out: "Console", columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = (), title: str = ""
) -> None:
    """Print rows under their column names; the columns in ``right`` hold numbers.

    Where numbers and names do not fit into the width of ``out``, each row becomes a block of its own.
    """
    from rich.cells import cell_len  # noqa: PLC0415

    cells, numbers = [tuple(map(plain, row)) for row in rows], set(right)
    if title:
        out.print(plain(title), style="italic", markup=False)
    texts = [name for name in columns if name not in numbers]
    widths = [max(map(cell_len, (*name.split("\n"), *column))) for name, *column in zip(columns, *cells, strict=True)]
    spare = out.width - sum(widths)
    between = len(columns) - 1
    if spare < between and texts:
        wrapped = max((at for at, name in enumerate(columns) if name in texts), key=widths.__getitem__)
        words = (word for row in cells for word in row[wrapped].split())
        narrow = max((LEAST_TEXT, *map(cell_len, words)))
        widths[wrapped] = min(widths[wrapped], max(narrow, widths[wrapped] + spare - 2 * between))
        spare = out.width - sum(widths)
    if spare < between:
        _print_blocks(out, columns, cells, numbers)
    else:
        _print_grid(out, columns, cells, numbers, widths)


def _print_grid(
    out: "Console", columns: Sequence[str], cells: Sequence[Sequence[str]], numbers: set[str], widths: Sequence[int]
) -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= out.width else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for name, width in zip(columns, widths, strict=True):
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    out.print(table)


def _print_blocks(out: "Console", columns: Sequence[str], cells: Sequence[Sequence[str]], numbers: set[str]) -> None:
    """Print each row as its first cells, and below them its figures by name."""
    from rich.cells import cell_len  # noqa: PLC0415

    heads = next((at for at, name in enumerate(columns) if name in numbers), 1)
    names, group = [], ""
    for name in columns:
        first, _, rest = name.partition("\n")
        group = first or group
        names.append(" ".join(filter(None, (group, rest))).replace("- ", ""))
    for row in cells:
        lines = [" ".join(filter(None, row[:heads]))]
        for name, cell in zip(names[heads:], row[heads:], strict=True):
            item = f"{name} {cell}".strip() if cell else ""
            if item and (len(lines) == 1 or cell_len(f"{lines[-1]}, {item}") > out.width):
                lines.append(f"  {item}")
            elif item:
                lines[-1] += f", {item}"
        for line in filter(str.strip, lines):
            wrapped = textwrap.wrap(line, out.width, subsequent_indent="    ", break_on_hyphens=False)
            out.print(*wrapped, sep="\n", markup=False, soft_wrap=True)
