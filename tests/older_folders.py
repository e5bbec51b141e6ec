"""Folders that relaycast 0.1.0 wrote: ``--data`` of a server that was stopped, of one that was killed, a batch run."""

import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "vectors" / "folders_0_1_0.tar.xz"


def unpacked(name: str, place: Path) -> Path:
    """Return the folder ``name`` (``stopped``, ``killed`` or ``batch``), unpacked below ``place``."""
    with tarfile.open(ARCHIVE, "r:xz") as archive:
        archive.extractall(place, [it for it in archive if it.name.split("/")[0] == name], filter="data")
    return place / name
