"""Cells of a sweep that are done, on disk until the table is written: an interrupted sweep goes on behind them.

Law: a file has the digest of its content in its name, and is moved to its place when it is whole. What is damaged does
not count. Cells of another sweep, or of another version, are thrown away.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from relaycast.out_file import parents_of, refusing_os_errors
from relaycast.simulation.sweep import Cell
from relaycast.version import __version__
from relaycast_ledger.staged_file import LOCK, alone_in

Row = dict[str, Any]

TERMS = "sweep"

_NAME = re.compile(r"cell-(\d+)-([0-9a-f]{32})\.json")


class SweepFolder:
    """The folder of one sweep under way."""

    def __init__(self, path: Path, cells: list[Cell]) -> None:
        self.path = path
        self._terms = _digest(__version__.encode() + msgspec.json.encode(cells)).encode()
        self._cells = {cell.number for cell in cells}

    def begin(self, *, resume: bool) -> dict[int, list[Row]]:
        """Return the rows of every cell that is done; what does not count is removed."""
        terms = self.path / TERMS
        if not resume or not terms.is_file() or terms.read_bytes() != self._terms:
            self._clear()
            self._write(TERMS, self._terms)
        found: dict[int, list[Row]] = {}
        for path in self.path.iterdir():
            if path.name in {LOCK, TERMS}:
                continue
            named = _NAME.fullmatch(path.name)
            content = path.read_bytes() if named and path.is_file() else b""
            if named and int(named[1]) in self._cells and _digest(content) == named[2]:
                found[int(named[1])] = msgspec.json.decode(content, type=list[Row])
            else:
                _remove(path)
        return found

    def keep(self, number: int, rows: list[Row]) -> None:
        """Keep what a cell came to; one that failed is run again by the next sweep."""
        if not any(row.get("error") for row in rows):
            content = msgspec.json.encode(rows)
            self._write(f"cell-{number}-{_digest(content)}.json", content)

    def remove(self) -> None:
        """Remove what is in the folder, which goes with its lock."""
        self._clear()

    def _write(self, name: str, content: bytes) -> None:
        under_way = self.path / f".{name}.{os.getpid()}"
        try:
            under_way.write_bytes(content)
            under_way.rename(self.path / name)
        except OSError:
            under_way.unlink(missing_ok=True)
            raise

    def _clear(self) -> None:
        for path in self.path.iterdir():
            if path.name != LOCK:
                _remove(path)


@contextmanager
def sweep_folder(out: Path, cells: list[Cell], *, option: str) -> Iterator[SweepFolder]:
    """Give the folder beside ``out``, kept for this process alone.

    Raises ``WorkFolderInUse``, and ``BadInput`` that names the ``option`` where it cannot be written.
    """
    path = out.parent / f".{out.name}.cells"
    with (
        refusing_os_errors(f"{option} {out}", "a file that can be written"),
        parents_of(path),
        alone_in(path, works_on=out),
    ):
        yield SweepFolder(path, cells)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
