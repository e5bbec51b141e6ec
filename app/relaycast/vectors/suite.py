"""The suite's folder: its files, the manifest with their digests, and the check of both.

Law: the same version and seed give the same bytes. A folder is written beside its place and moved there, and only a
suite is ever replaced.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from relaycast.refusal import BadInput, shown
from relaycast.simulation.run_folder import staged
from relaycast.vectors.kinds import KINDS
from relaycast.vectors.vector import Drafted, Hash, Vector
from relaycast.vectors.vector_kind import VectorKind
from relaycast.version import __version__
from relaycast_trie.hasher import blake2_256

SuiteName = Literal["relaycast-conformance"]
SuiteVersion = Literal[2]
MANIFEST, README, SCHEMA, TYPES = "suite.json", "README.md", "schema.json", "types.json"
DEFAULT_SEED = 7
DOCUMENT = "document"

MOST_FILE_BYTES = 64 << 20
"""Largest file of a suite that is read."""

UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading a manifest raises that is none."""

_PATH = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,9}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class SuiteFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the suite; ``blake2_256`` is the hash of its bytes. Documents hold no vectors."""

    path: str
    kind: str
    vectors: Annotated[int, Meta(ge=0)]
    bytes: Annotated[int, Meta(ge=0)]
    blake2_256: Hash


class SuiteManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """``suite.json``."""

    suite: SuiteName
    version: SuiteVersion
    relaycast: str
    """The version of relaycast that wrote the suite."""

    seed: int
    vectors: int
    files: list[SuiteFile]

    @property
    def size(self) -> int:
        """Bytes of all listed files."""
        return sum(file.bytes for file in self.files)

    def by_kind(self) -> dict[str, int]:
        """Return the number of vectors of each kind."""
        counts: dict[str, int] = {}
        for file in self.files:
            if file.vectors:
                counts[file.kind] = counts.get(file.kind, 0) + file.vectors
        return counts


def export(folder: Path, *, seed: int = DEFAULT_SEED) -> SuiteManifest:
    """Write the suite, all of it or nothing; raises ``BadInput`` for a folder that holds something else."""
    place = folder.resolve()
    check_place(place, str(folder))
    with staged(place.parent, place.name, option="DIR") as staging:
        files = []
        for path, kind, vectors, data in contents(seed):
            (staging / path).parent.mkdir(exist_ok=True)
            (staging / path).write_bytes(data)
            files.append(SuiteFile(path, kind, vectors, len(data), f"0x{blake2_256(data).hex()}"))
        manifest = SuiteManifest(
            "relaycast-conformance", 2, __version__, seed, sum(file.vectors for file in files), files
        )
        (staging / MANIFEST).write_bytes(encoded_manifest(manifest))
    return manifest


def contents(seed: int) -> Iterator[tuple[str, str, int, bytes]]:
    """Yield path, kind, number of vectors and bytes of every file but the manifest."""
    for document, package in ((README, "relaycast.vectors"), (TYPES, "relaycast_spec")):
        yield document, DOCUMENT, 0, resources.files(package).joinpath(document).read_bytes()
    yield SCHEMA, DOCUMENT, 0, msgspec.json.format(msgspec.json.encode(suite_schema()), indent=1) + b"\n"
    known: set[str] = set()
    for kind in KINDS:
        by_file: dict[str, list[Vector]] = {}
        for name, vector in kind.made(seed):
            assert vector.id not in known, f"two vectors are called {vector.id}"
            known.add(vector.id)
            by_file.setdefault(name, []).append(vector)
        for name, vectors in by_file.items():
            yield f"{kind.name}/{name}.json", kind.name, len(vectors), encoded_file(kind.name, vectors)


def encoded_file(kind: str, vectors: list[Vector]) -> bytes:
    """Return a file of vectors, one a line."""
    lines = b",\n".join(msgspec.json.encode(vector) for vector in vectors)
    return b'{"kind": "%s", "vectors": [\n%s\n]}\n' % (kind.encode(), lines)


def encoded_manifest(manifest: SuiteManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


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
    """Return the manifest of the suite in ``folder``; raises what is ``UNREADABLE``."""
    return msgspec.json.decode(_read(folder / MANIFEST), type=SuiteManifest)


def _read(path: Path) -> bytes:
    """Return what a regular file holds; raises ``OSError``, for larger ones and other kinds, too."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        data = stream.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def suite_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``suite.json`` and of the files of vectors, made from the structures."""
    types = [SuiteManifest, *(kind.vector for kind in KINDS)]
    found, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for struct in _structs_of(Drafted):
        _require(definitions.get(struct.__name__, {}), struct.computed)
    files = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind.name}, "vectors": {"type": "array", "items": vector}},
            "required": ["kind", "vectors"],
            "additionalProperties": False,
        }
        for kind, vector in zip(KINDS, found[1:], strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "relaycast conformance suite",
        "anyOf": [found[0], *files],
        "$defs": definitions,
    }


def _structs_of(struct: type[Drafted]) -> Iterator[type[Drafted]]:
    for below in struct.__subclasses__():
        yield below
        yield from _structs_of(below)


def _require(definition: dict[str, Any], names: tuple[str, ...]) -> None:
    """Make fields required that a draft of a vector may lack."""
    for name in names if definition else ():
        about = definition["properties"][name]
        about.pop("default")
        about["anyOf"] = [it for it in about["anyOf"] if it != {"type": "null"}]
        definition["required"].append(name)


class SuiteFault(Exception):
    """A file of a suite that is not as it should be; ``vector`` is empty where no vector can be named."""

    def __init__(self, path: str, vector: str, reason: str) -> None:
        super().__init__(path, vector, reason)
        self.path = path
        self.vector = vector
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}{f', vector {self.vector}' if self.vector else ''}: {self.reason}"


def check(folder: Path) -> SuiteManifest:
    """Verify the digests of a suite and compute every vector anew.

    Raises ``SuiteFault`` for the first file or vector that differs, and ``BadInput`` where there is no suite.
    """
    try:
        manifest = read_manifest(folder)
    except UNREADABLE as error:
        raise BadInput(f"DIR {folder}", f"no suite ({error})", f"a folder with {MANIFEST}") from None
    kinds = {kind.name: kind for kind in KINDS}
    check_manifest(manifest)
    for file in manifest.files:
        try:
            data = _read(folder / file.path)
        except OSError as error:
            raise SuiteFault(file.path, "", os.strerror(error.errno or 0).lower()) from None
        is_intact = blake2_256(data).hex() == file.blake2_256.removeprefix("0x")
        if file.kind in kinds:
            check_file(file, data, kinds[file.kind], manifest)
        if not is_intact:
            raise SuiteFault(file.path, _changed_vector(file, data, manifest), "the file's digest is another one")
        if len(data) != file.bytes:
            raise SuiteFault(file.path, "", f"{len(data):,} bytes, {MANIFEST} says {file.bytes:,}")
    return manifest


def check_manifest(manifest: SuiteManifest) -> None:
    """Raise ``SuiteFault`` for a manifest whose files are not a suite's, or whose numbers do not add up."""
    known = {DOCUMENT, *(kind.name for kind in KINDS)}
    paths: set[str] = set()
    for file in manifest.files:
        path = shown(file.path)
        if not _PATH.fullmatch(file.path):
            raise SuiteFault(MANIFEST, "", f"{path} is no path inside the suite")
        if file.path in paths:
            raise SuiteFault(MANIFEST, "", f"{path} is listed twice")
        if file.kind not in known:
            raise SuiteFault(
                MANIFEST, "", f"{path} is of the kind {shown(file.kind)}, known: {', '.join(sorted(known))}"
            )
        if file.kind == DOCUMENT and file.vectors:
            raise SuiteFault(MANIFEST, "", f"{path} is a document with {file.vectors:,} vectors")
        paths.add(file.path)
    total = sum(file.vectors for file in manifest.files)
    if total != manifest.vectors or not total:
        raise SuiteFault(MANIFEST, "", f"{manifest.vectors:,} vectors, its files have {total:,}")


def check_file(file: SuiteFile, data: bytes, kind: VectorKind, manifest: SuiteManifest) -> None:
    """Compute every vector of a file anew; raises ``SuiteFault`` for the first that differs."""
    lines = data.splitlines()[1:-1]
    for line in lines:
        try:
            vector = msgspec.json.decode(line.rstrip(b","), type=kind.vector)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SuiteFault(file.path, _changed_vector(file, data, manifest), f"no vector: {error}") from None
        difference = kind.difference(vector)
        if difference:
            raise SuiteFault(file.path, vector.id, difference)
    if len(lines) != file.vectors:
        raise SuiteFault(file.path, "", f"{len(lines)} vectors, expected {file.vectors}")


def _changed_vector(file: SuiteFile, data: bytes, manifest: SuiteManifest) -> str:
    """Return the id of a file's first vector that the manifest's seed gives otherwise, empty if none differs."""
    if not file.vectors or manifest.relaycast != __version__:
        return ""
    written = next((found for path, _, _, found in contents(manifest.seed) if path == file.path), b"")
    for given, line in zip(data.splitlines(), written.splitlines(), strict=False):
        if given != line and b'"id":' in line:
            name: str = msgspec.json.decode(line.rstrip(b","))["id"]
            return name
    return ""
