"""Whole folders as values, to be compared before and after."""

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return everything in ``folder``: files with what they hold, folders with nothing."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}
