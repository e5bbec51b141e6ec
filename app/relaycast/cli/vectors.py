"""``relaycast vectors``: the conformance suite, unpacked and checked.

The vectors ship with the specification; nothing is computed when they are exported. A folder is written next to its
place and moved there, and only a suite is ever replaced. ``check`` computes every vector with the specification.
"""

import errno
import json as json_text
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter
from msgspec import Meta, Struct

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.refusal import BadInput, one_line, shown
from relaycast.simulation.run_folder import staged
from relaycast.terminal import counted, say
from relaycast.version import __version__
from relaycast_trie.hasher import blake2_256

app = App(name="vectors", help="Write and check a conformance suite for implementations of pub-sub.")

Folder = Annotated[str, Parameter(name="DIR", help="the suite's folder")]
Hash = Annotated[str, Meta(pattern="^0x[0-9a-f]{64}$", description="32 bytes")]

MANIFEST = "suite.json"

MOST_FILE_BYTES = 64 << 20
"""Largest file of a suite that is read."""

UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a manifest that cannot be read."""

_PATH = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,9}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class SuiteFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the suite; ``blake2_256`` is the hash of its bytes. Documents hold no vectors."""

    path: str
    kind: str
    vectors: Annotated[int, Meta(ge=0)]
    bytes: Annotated[int, Meta(ge=0)]
    blake2_256: Hash


class SuiteManifest(Struct, frozen=True):
    """``suite.json``."""

    suite: Literal["relaycast-conformance"]
    version: Literal[2]
    relaycast: str
    """The version of relaycast that wrote the suite."""

    vectors: int
    files: list[SuiteFile]

    @property
    def size(self) -> int:
        """Bytes of all listed files."""
        return sum(file.bytes for file in self.files)

    def by_kind(self) -> dict[str, int]:
        """Return the number of vectors of each kind."""
        counts: Counter[str] = Counter()
        for file in self.files:
            counts[file.kind] += file.vectors
        return dict(+counts)

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


class SuiteFault(Exception):
    """A file of a suite that is not as it should be; ``vector`` is empty where no vector can be named."""

    def __init__(self, path: str, vector: str, reason: str) -> None:
        super().__init__(path, vector, reason)
        self.path = path
        self.vector = vector
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}{f', vector {self.vector}' if self.vector else ''}: {self.reason}"


@app.command
def export(folder: Folder, /, *, json: Json = False) -> ExitCode:
    """Write the suite into DIR: README.md, schema.json, suite.json and the vectors of every kind.

    DIR is new, empty, or holds a suite, which is replaced. The same version writes the same bytes.

    Example: relaycast vectors export suite
    """
    manifest = exported(Path(folder))
    digest = f"0x{blake2_256(manifest.encode()).hex()}"
    if json:
        print(
            json_text.dumps(
                {"vectors": manifest.by_kind(), "bytes": manifest.size, "blake2_256": digest, "out": folder}
            )
        )
        return ExitCode.FINE
    for kind, count in manifest.by_kind().items():
        print(f"{kind:<12} {counted(count, 'vector')}")
    say(f"{manifest.vectors:,} vectors, {manifest.size:,} bytes, {MANIFEST} has the Blake2b-256 hash {digest}")
    return ExitCode.FINE


@app.command
def check(folder: Folder, /, *, json: Json = False) -> ExitCode:
    """Verify the digests of the suite in DIR, and compute every vector with the executable specification.

    The first file or vector that differs is named, and the exit code is 1.

    Example: relaycast vectors check suite
    """
    try:
        manifest = checked(Path(folder))
    except SuiteFault as fault:
        if json:
            print(json_text.dumps({"path": fault.path, "vector": fault.vector, "reason": fault.reason}))
        else:
            print(one_line(f"{folder}/{fault}"))
        return ExitCode.CHECK_FAILED
    if json:
        print(json_text.dumps({"vectors": manifest.by_kind(), "bytes": manifest.size}))
    else:
        print(f"{manifest.vectors:,} vectors are as the specification computes them")
    return ExitCode.FINE


def exported(folder: Path) -> SuiteManifest:
    """Write the suite, all of it or nothing; raises ``BadInput`` for a folder that holds something else."""
    from relaycast_spec import vectors as spec  # noqa: PLC0415

    place = folder.resolve()
    check_place(place, str(folder))
    with staged(place.parent, place.name, option="DIR") as staging:
        files = []
        for path, data in spec.shipped():
            (staging / path).parent.mkdir(exist_ok=True)
            (staging / path).write_bytes(data)
            kind = spec.kind_of(path)
            count = 0 if kind == spec.DOCUMENT else len(_lines(data))
            files.append(SuiteFile(path, kind, count, len(data), f"0x{blake2_256(data).hex()}"))
        manifest = SuiteManifest("relaycast-conformance", 2, __version__, sum(file.vectors for file in files), files)
        (staging / MANIFEST).write_bytes(manifest.encode())
    return manifest


def check_place(place: Path, shown: str) -> None:
    """Raise ``BadInput`` unless a suite may be written to ``place``: it is new, empty or holds nothing but a suite."""
    expected = "a new folder, an empty one or one that holds a suite"
    if place in {Path.cwd(), *Path.cwd().parents}:
        raise BadInput(f"DIR {shown}", "the working folder or one above it", expected)
    if not place.exists():
        return
    if not place.is_dir():
        raise BadInput(f"DIR {shown}", "a file", expected)
    there = {path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir() or path.is_symlink()}
    if not there:
        return
    try:
        known = {MANIFEST, *(file.path for file in read_manifest(place).files)}
    except UNREADABLE:
        known = set()
    foreign = sorted(there - known)
    if foreign:
        raise BadInput(f"DIR {shown}", f"{foreign[0]} in it", expected)


def read_manifest(folder: Path) -> SuiteManifest:
    """Return the manifest of the suite in ``folder``; raises ``UNREADABLE`` errors."""
    return msgspec.json.decode(_read(folder / MANIFEST), type=SuiteManifest)


def _read(path: Path) -> bytes:
    """Return the bytes of a regular file; raises ``OSError``, also for larger ones and other kinds."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        data = stream.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def checked(folder: Path) -> SuiteManifest:
    """Verify the digests of a suite and compute every vector.

    Raises ``SuiteFault`` for the first file or vector that differs, and ``BadInput`` where there is no suite.
    """
    from relaycast_spec.vectors import DOCUMENT, KINDS  # noqa: PLC0415

    try:
        manifest = read_manifest(folder)
    except UNREADABLE as error:
        raise BadInput(f"DIR {folder}", f"no suite ({error})", f"a folder with {MANIFEST}") from None
    _check_manifest(manifest, {DOCUMENT, *KINDS})
    for file in manifest.files:
        try:
            data = _read(folder / file.path)
        except OSError as error:
            raise SuiteFault(file.path, "", os.strerror(error.errno or 0).lower()) from None
        if file.kind != DOCUMENT:
            _check_vectors(file, data, manifest)
        if f"0x{blake2_256(data).hex()}" != file.blake2_256:
            raise SuiteFault(file.path, _changed_vector(file, data, manifest), "the file's digest is another one")
        if len(data) != file.bytes:
            raise SuiteFault(file.path, "", f"{len(data):,} bytes, {MANIFEST} says {file.bytes:,}")
    return manifest


def _check_manifest(manifest: SuiteManifest, kinds: set[str]) -> None:
    """Raise ``SuiteFault`` for a manifest whose files are not a suite's, or whose numbers do not add up."""
    paths: set[str] = set()
    for file in manifest.files:
        path = shown(file.path)
        if not _PATH.fullmatch(file.path):
            raise SuiteFault(MANIFEST, "", f"{path} is no path inside the suite")
        if file.path in paths:
            raise SuiteFault(MANIFEST, "", f"{path} is listed twice")
        if file.kind not in kinds:
            known = ", ".join(sorted(kinds))
            raise SuiteFault(MANIFEST, "", f"{path} is of the kind {shown(file.kind)}, known: {known}")
        if file.kind == "document" and file.vectors:
            raise SuiteFault(MANIFEST, "", f"{path} is a document with {file.vectors:,} vectors")
        paths.add(file.path)
    total = sum(file.vectors for file in manifest.files)
    if total != manifest.vectors or not total:
        raise SuiteFault(MANIFEST, "", f"{manifest.vectors:,} vectors, its files have {total:,}")


def _check_vectors(file: SuiteFile, data: bytes, manifest: SuiteManifest) -> None:
    """Compute every vector of a file; raises ``SuiteFault`` for the first that differs."""
    from relaycast_spec.vectors import mismatches  # noqa: PLC0415

    lines = _lines(data)
    for line in lines:
        try:
            name = msgspec.json.decode(line, type=_Named).id
            vector = json_text.loads(line)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise SuiteFault(file.path, _changed_vector(file, data, manifest), f"no vector: {error}") from None
        difference = next(mismatches(file.kind, vector), "")
        if difference:
            raise SuiteFault(file.path, name, difference)
    if len(lines) != file.vectors:
        raise SuiteFault(file.path, "", f"{len(lines)} vectors, expected {file.vectors}")


class _Named(Struct):
    id: str


def _lines(data: bytes) -> list[bytes]:
    """Return the vectors of a file, one a line between its first and its last."""
    return [line.rstrip(b",") for line in data.splitlines()[1:-1]]


def _changed_vector(file: SuiteFile, data: bytes, manifest: SuiteManifest) -> str:
    """Return the id of a file's first vector that does not ship with this version, empty if each of them does."""
    from relaycast_spec.vectors import shipped  # noqa: PLC0415

    if not file.vectors or manifest.relaycast != __version__:
        return ""
    genuine = next((found for path, found in shipped() if path == file.path), b"")
    for given, line in zip(_lines(data), _lines(genuine), strict=False):
        if given != line:
            return msgspec.json.decode(line, type=_Named).id
    return ""
