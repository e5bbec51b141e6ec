"""``relaycast vectors``: the suite as files, its check, and folders made to mislead it."""

import json
import os
import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import relaycast_spec.vectors
from command_line import Command, Refused
from relaycast.cli import vectors
from relaycast.cli.vectors import MANIFEST, SuiteFault, SuiteManifest, checked, exported, read_manifest
from relaycast.refusal import BadInput
from relaycast_trie import blake2_256
from small_disks import FULL, full_disk

MOST_BYTES = 10_000_000


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    exported(tmp_path / "suite")
    return tmp_path / "suite"


@pytest.fixture
def proofs(suite: Path) -> Path:
    """The part of a suite that holds proofs: it is checked in a moment."""
    for kind in ("subscriber", "broadcaster", "xcm"):
        shutil.rmtree(suite / kind)
    manifest = read_manifest(suite)
    write(suite, [file for file in manifest.files if file.kind in {"proofs", "document"}])
    return suite


def write(folder: Path, files: list[vectors.SuiteFile]) -> None:
    """Write the manifest of these files."""
    total = sum(file.vectors for file in files)
    manifest = msgspec.structs.replace(read_manifest(folder), files=files, vectors=total)
    (folder / MANIFEST).write_bytes(manifest.encode())


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Export


def test_the_same_version_writes_the_same_bytes(suite: Path, tmp_path: Path) -> None:
    exported(tmp_path / "again")
    assert bytes_in(tmp_path / "again") == bytes_in(suite)


def test_the_suite_is_smaller_than_ten_megabytes(suite: Path) -> None:
    assert sum(map(len, bytes_in(suite).values())) < MOST_BYTES


def test_the_manifest_lists_every_file_with_its_vectors(suite: Path) -> None:
    manifest = read_manifest(suite)
    assert {file.path for file in manifest.files} | {MANIFEST} == set(bytes_in(suite))
    assert manifest.vectors == sum(file.vectors for file in manifest.files) > 2_000
    for file in manifest.files:
        data = (suite / file.path).read_bytes()
        assert file.bytes == len(data)
        assert file.vectors == 0 or file.path.startswith(f"{file.kind}/")
        assert file.vectors == (len(json.loads(data)["vectors"]) if file.vectors else 0)


def test_a_suite_is_replaced_whole(proofs: Path, tmp_path: Path) -> None:
    exported(proofs)
    assert read_manifest(proofs).by_kind().keys() == {"subscriber", "broadcaster", "xcm", "proofs"}
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]


@pytest.mark.parametrize("kind", ["a file", "a foreign folder", "a suite and a note", "an unread manifest", "here"])
def test_a_folder_that_holds_something_else_is_refused_and_left_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "place"
    if kind == "a file":
        folder.write_text("mine")
    else:
        folder.mkdir()
    if kind in {"a foreign folder", "an unread manifest"}:
        (folder / ("notes.txt" if kind == "a foreign folder" else MANIFEST)).write_text("mine")
    if kind == "a suite and a note":
        exported(folder)
        (folder / "xcm" / "notes.txt").write_text("mine")
    if kind == "here":
        monkeypatch.chdir(folder)
    before = bytes_in(tmp_path)
    with pytest.raises(BadInput, match="expected a new folder, an empty one or one that holds a suite"):
        exported(folder)
    assert bytes_in(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize("after", [0, 2, 4])
@pytest.mark.parametrize("is_there", [False, True])
def test_an_export_that_is_interrupted_leaves_everything_as_it_was(
    after: int, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "above" / "suite"
    if is_there:
        exported(folder)
        (folder / "README.md").write_bytes(b"an older page")
    before = bytes_in(tmp_path)
    files = list(relaycast_spec.vectors.shipped())

    def interrupted() -> Any:
        yield from files[:after]
        raise KeyboardInterrupt

    monkeypatch.setattr(relaycast_spec.vectors, "shipped", interrupted)
    with pytest.raises(KeyboardInterrupt):
        exported(folder)
    assert bytes_in(tmp_path) == before
    assert [path.name for path in tmp_path.rglob("*") if path.name.startswith(".")] == []
    assert folder.exists() == is_there


def test_a_full_disk_leaves_nothing(relaycast: Command, tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk") as disk:
        ended = relaycast("vectors", "export", "disk/room/suite")
        assert list(disk.iterdir()) == []
    assert ended.code == 2
    assert any(reason in ended.err for reason in FULL)


# Check


def test_a_suite_that_nobody_touched_is_as_the_specification_computes_it(suite: Path) -> None:
    assert checked(suite) == read_manifest(suite)


def test_a_suite_of_the_version_before_with_a_seed_is_still_checked(proofs: Path) -> None:
    manifest = json.loads((proofs / MANIFEST).read_bytes())
    (proofs / MANIFEST).write_text(json.dumps(manifest | {"relaycast": "0.1.0", "seed": 7}))
    assert checked(proofs).relaycast == "0.1.0"


FAULTS = [
    ("broadcaster/publication.json", r'("result":)"ok"', r'\1"no"'),
    ("broadcaster/publication.json", r'("root":"0x)(.)', r"\1g"),
    ("broadcaster/publication.json", r'("events":\["0x..)0', r"\g<1>1"),
    ("broadcaster/publication.json", r'("why":".)', r"\1!"),
    ("xcm/messages.json", r'("encoded":"0x..)(.)', r"\g<1>f"),
    ("xcm/messages.json", r'("source":)', r"\1 "),
    ("proofs/compact.json", r'("compact":\["0x)..', r"\1ff"),
    ("proofs/tries.json", r'(\{"test":")node', r"\1noda"),
]
"""A file, a pattern in its fifth vector, and its replacement."""


@pytest.mark.parametrize(("path", "pattern", "changed"), FAULTS)
def test_a_flipped_byte_is_found_with_its_file_and_vector(path: str, pattern: str, changed: str, suite: Path) -> None:
    write(suite, [file for file in read_manifest(suite).files if file.path == path])
    lines = (suite / path).read_text().splitlines(keepends=True)
    name = json.loads(lines[5].rstrip(",\n"))["id"]
    lines[5], count = re.subn(pattern, changed, lines[5], count=1)
    assert count == 1
    (suite / path).write_text("".join(lines))
    with pytest.raises(SuiteFault) as fault:
        checked(suite)
    assert (fault.value.path, fault.value.vector) == (path, name)


@pytest.mark.parametrize("number", range(16))
def test_any_flipped_bit_is_found_in_its_line(number: int, proofs: Path) -> None:
    random = Random(number)
    path = random.choice([file.path for file in read_manifest(proofs).files if file.vectors])
    data = bytearray((proofs / path).read_bytes())
    start, end = data.index(b"\n") + 1, data.rindex(b"\n]}")
    at = random.randrange(start, end)
    line = data[data.rindex(b"\n", 0, at) + 1 :].split(b"\n")[0]
    data[at] ^= 1 << random.randrange(8)
    (proofs / path).write_bytes(data)
    with pytest.raises(SuiteFault) as fault:
        checked(proofs)
    assert fault.value.path == path
    assert fault.value.vector == json.loads(line.rstrip(b","))["id"]


def test_a_vector_that_was_computed_otherwise_is_found_though_the_digests_fit(suite: Path) -> None:
    path = suite / "xcm" / "barriers.json"
    path.write_bytes(path.read_bytes().replace(b'"error":"BadFormat"', b'"error":"Overweight"', 1))
    (file,) = (file for file in read_manifest(suite).files if file.path == "xcm/barriers.json")
    write(suite, [msgspec.structs.replace(file, blake2_256=f"0x{blake2_256(path.read_bytes()).hex()}")])
    with pytest.raises(SuiteFault, match=r'expect\.error: the vector has "Overweight", computed is "BadFormat"'):
        checked(suite)


@pytest.mark.parametrize("path", ["README.md", "proofs/children.json"])
def test_a_file_that_is_missing_or_changed_is_named(path: str, proofs: Path) -> None:
    (proofs / path).write_bytes((proofs / path).read_bytes() + b"\n\n")
    with pytest.raises(SuiteFault, match=path):
        checked(proofs)
    (proofs / path).unlink()
    with pytest.raises(SuiteFault, match="no such file"):
        checked(proofs)


def test_a_vector_that_was_taken_out_is_missed(proofs: Path) -> None:
    lines = (proofs / "proofs" / "tries.json").read_text().splitlines(keepends=True)
    del lines[7]
    (proofs / "proofs" / "tries.json").write_text("".join(lines))
    with pytest.raises(SuiteFault, match=r"proofs/tries.json: \d+ vectors, expected \d+"):
        checked(proofs)


# Folders made to mislead it: nothing outside is read, nothing is believed

LISTED = {"path": "xcm/a.json", "kind": "xcm", "vectors": 1, "bytes": 0, "blake2_256": f"0x{bytes(32).hex()}"}


def forged(folder: Path, *files: dict[str, Any], total: int = 1) -> Path:
    """Write a manifest that lists ``files``, each a change of ``LISTED``."""
    folder.mkdir(exist_ok=True)
    head = {"suite": "relaycast-conformance", "version": 2, "relaycast": "0", "vectors": total}
    (folder / MANIFEST).write_text(json.dumps({**head, "files": [LISTED | it for it in files]}))
    return folder


def fault_of(folder: Path) -> str:
    with pytest.raises(SuiteFault) as found:
        checked(folder)
    return str(found.value)


@pytest.mark.parametrize(
    "path", ["", "/dev/zero", "../suite.json", "xcm/../../a", "a\0b", "a\x1b[31m\nb", "xcm//a", "a/", "a" * 5_000]
)
def test_a_path_that_leaves_the_folder_is_not_read(tmp_path: Path, path: str) -> None:
    assert "is no path inside the suite" in fault_of(forged(tmp_path, {"path": path}))


@pytest.mark.parametrize(
    ("files", "total", "told"),
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
    tmp_path: Path, files: list[dict[str, Any]], total: int, told: str
) -> None:
    assert told in fault_of(forged(tmp_path, *files, total=total))


def test_a_pipe_is_no_file_of_a_suite(tmp_path: Path) -> None:
    (forged(tmp_path, {}) / "xcm").mkdir()
    os.mkfifo(tmp_path / "xcm/a.json")
    assert "invalid argument" in fault_of(tmp_path)


DEEP = b'{"id":' * 100_000
LINES = {
    "nested too deep": (DEEP, "no vector"),
    "a list": (b"[1]", "no vector"),
    "without an id": (b'{"test":"bytes"}', "no vector"),
    "nested inside": (b'{"id":"a","test":"bytes","message":%s}' % (b"[" * 9_000 + b"]" * 9_000), "xcm/a.json"),
    "a number of 5,000 digits": (b'{"id":"a","test":"malformed","encoded":"%s"}' % (b"7" * 5_000), "xcm/a.json"),
    "an unknown test": (b'{"id":"a","test":"executed"}', "no test is called 'executed'"),
    "bytes that are none": (b'{"id":"a","test":"malformed","encoded":"0xzz"}', "cannot be computed"),
    "nothing expected": (b'{"id":"a","test":"malformed","encoded":"0x"}', "error: the vector has null"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_no_vector_is_named(name: str, tmp_path: Path) -> None:
    line, told = LINES[name]
    data = b'{"kind": "xcm", "vectors": [\n' + line + b"\n]}\n"
    folder = forged(tmp_path, {"blake2_256": f"0x{blake2_256(data).hex()}", "bytes": len(data)})
    (folder / "xcm").mkdir()
    (folder / "xcm/a.json").write_bytes(data)
    assert told in fault_of(folder)


def test_the_size_that_a_manifest_gives_is_checked(tmp_path: Path) -> None:
    data = b"# Words\n"
    about = {"path": "README.md", "kind": "document", "vectors": 0, "blake2_256": f"0x{blake2_256(data).hex()}"}
    folder = forged(tmp_path, about | {"bytes": 9_000}, {})
    (folder / "README.md").write_bytes(data)
    assert "8 bytes, suite.json says 9,000" in fault_of(folder)


@pytest.mark.parametrize("manifest", [b"\xff", b'{"suite": "\xff"}', b"[" * 500_000, b'{"files": ' * 500_000, b""])
@pytest.mark.parametrize("verb", ["check", "export"])
def test_a_manifest_that_is_none_is_refused_in_one_line(
    relaycast: Command, tmp_path: Path, manifest: bytes, verb: str
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / MANIFEST).write_bytes(manifest)
    ended = relaycast("vectors", verb, "suite")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert (tmp_path / "suite" / MANIFEST).read_bytes() == manifest


# The commands


def test_the_command_writes_and_checks_a_suite(relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast("vectors", "export", "deep/suite")
    assert ended.code == 0
    manifest: SuiteManifest = read_manifest(tmp_path / "deep" / "suite")
    assert f"{manifest.vectors:,} vectors, {manifest.size:,} bytes" in ended.out
    told = relaycast("vectors", "export", "deep/suite", "--json").json
    assert told["vectors"] == manifest.by_kind()
    assert told["blake2_256"] in ended.out
    said = relaycast("vectors", "check", "deep/suite").out
    assert said == f"{manifest.vectors:,} vectors are as the specification computes them\n"


def test_the_command_names_the_first_difference_and_ends_with_1(relaycast: Command, proofs: Path) -> None:
    file = proofs / "proofs" / "children.json"
    file.write_bytes(file.read_bytes().replace(b'"root":"0x', b'"root":"0xf', 1))
    for flags in ((), ("--json",)):
        ended = relaycast("vectors", "check", "suite", *flags)
        assert ended.code == 1
        assert "proofs/children.json" in ended.out
        assert "proofs/child/name-0" in ended.out


def test_slips_are_refused_in_one_line(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert refused("vectors", "export", "mine").startswith("DIR mine: got notes.txt in it, expected a new folder")
    assert refused("vectors", "check", "mine").startswith("DIR mine: got no suite")
    assert "--seed" in refused("vectors", "export", "new", "--seed", "7")
    assert not (tmp_path / "new").exists()
