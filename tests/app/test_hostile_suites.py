"""``relaycast vectors check`` on folders made to mislead it: one line each, nothing read outside, nothing believed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from command_line import Command
from relaycast.vectors.suite import SuiteFault, check
from relaycast_trie import blake2_256

LISTED = {"path": "xcm/a.json", "kind": "xcm", "vectors": 1, "bytes": 0, "blake2_256": f"0x{bytes(32).hex()}"}


def suite(folder: Path, *files: dict[str, Any], vectors: int = 1) -> Path:
    """Write a manifest that lists ``files``, each a change of ``LISTED``."""
    folder.mkdir(exist_ok=True)
    head = {"suite": "relaycast-conformance", "version": 2, "relaycast": "0", "seed": 7, "vectors": vectors}
    (folder / "suite.json").write_text(json.dumps({**head, "files": [LISTED | it for it in files]}))
    return folder


def fault(folder: Path) -> str:
    with pytest.raises(SuiteFault) as found:
        check(folder)
    return str(found.value)


@pytest.mark.parametrize(
    "path", ["", "/dev/zero", "../suite.json", "xcm/../../a", "a\0b", "a\x1b[31m\nb", "xcm//a", "a/", "a" * 5_000]
)
def test_a_path_that_leaves_the_folder_is_not_read(tmp_path: Path, path: str) -> None:
    assert "is no path inside the suite" in fault(suite(tmp_path, {"path": path}))


@pytest.mark.parametrize(
    ("files", "vectors", "told"),
    [
        ([], 0, "its files have 0"),
        ([], 2_273, "2,273 vectors, its files have 0"),
        ([{}], 2, "2 vectors, its files have 1"),
        ([{}, {}], 2, "listed twice"),
        ([{"kind": "subscribers"}], 1, "of the kind 'subscribers'"),
        ([{"kind": "document"}], 1, "a document with 1 vectors"),
    ],
)
def test_vectors_that_were_not_computed_are_not_counted(
    tmp_path: Path, files: list[dict[str, Any]], vectors: int, told: str
) -> None:
    assert told in fault(suite(tmp_path, *files, vectors=vectors))


def test_a_pipe_is_no_file_of_a_suite(tmp_path: Path) -> None:
    (suite(tmp_path, {}) / "xcm").mkdir()
    os.mkfifo(tmp_path / "xcm/a.json")
    assert "invalid argument" in fault(tmp_path)


def test_a_vector_that_nests_too_deep_is_none(tmp_path: Path) -> None:
    data = b'{"kind": "xcm", "vectors": [\n' + b'{"id":' * 100_000 + b"\n]}\n"
    folder = suite(tmp_path, {"blake2_256": f"0x{blake2_256(data).hex()}", "bytes": len(data)})
    (folder / "xcm").mkdir()
    (folder / "xcm/a.json").write_bytes(data)
    assert "no vector" in fault(folder)


def test_the_size_that_a_manifest_gives_is_checked(tmp_path: Path) -> None:
    data = b"# Words\n"
    about = {"path": "README.md", "kind": "document", "vectors": 0, "blake2_256": f"0x{blake2_256(data).hex()}"}
    folder = suite(tmp_path, about | {"bytes": 9_000}, {})
    (folder / "README.md").write_bytes(data)
    assert "8 bytes, suite.json says 9,000" in fault(folder)


@pytest.mark.parametrize("manifest", [b"\xff", b'{"suite": "\xff"}', b"[" * 500_000, b'{"files": ' * 500_000, b""])
@pytest.mark.parametrize("verb", ["check", "export"])
def test_a_manifest_that_is_none_is_refused_in_one_line(
    relaycast: Command, tmp_path: Path, manifest: bytes, verb: str
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/suite.json").write_bytes(manifest)
    ended = relaycast("vectors", verb, "suite")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert (tmp_path / "suite/suite.json").read_bytes() == manifest
