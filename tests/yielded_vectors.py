"""Vectors that tests yield: a scene is built once, and is a test and part of the conformance suite.

A test that is decorated with ``yields("kind/file")`` is a generator of vectors. Each of them must be the one of that
id that ships with the specification, byte for byte. ``python tests/yielded_vectors.py`` packs anew what the tests
yield: ids that ship keep their place, a new one follows the vector that its test yielded before.
"""

import functools
import inspect
import io
import itertools
import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ParamSpec

import msgspec

import proof_vectors
from pallets import block_vectors, broadcaster_vectors
from relaycast.cli.vectors import SuiteManifest
from relaycast_spec.vectors import ARCHIVE, DOCUMENT, first_difference, kind_of, shipped
from vector_fields import Drafted, Vector
from xcm import message_vectors

TESTS = Path(__file__).parent
SCHEMA = "schema.json"
Scene = Callable[..., Iterator[Vector]]
Given = ParamSpec("Given")

RUNS: dict[str, tuple[Any, Callable[[Any], Vector]]] = {
    "subscriber": (block_vectors.BlockVector, block_vectors.recomputed),
    "broadcaster": (broadcaster_vectors.BroadcasterVector, broadcaster_vectors.recomputed),
    "xcm": (message_vectors.XcmVector, message_vectors.recomputed),
    "proofs": (proof_vectors.ProofVector, proof_vectors.recomputed),
}
"""Of each kind the structure of a vector, and what computes with the product the fields that a vector expects."""


def yields(file: str) -> Callable[[Callable[Given, Iterator[Vector]]], Callable[Given, None]]:
    """Make a test of a generator whose vectors ship in ``file``, such as ``subscriber/traps``."""

    def decorate(scene: Callable[Given, Iterator[Vector]]) -> Callable[Given, None]:
        @functools.wraps(scene)
        def test(*args: Given.args, **kwargs: Given.kwargs) -> None:
            lines = shipped_lines(file)
            ids = [_ensure_shipped(lines, completed(vector)) for vector in scene(*args, **kwargs)]
            assert ids, "no vector is yielded"

        test.vectors = file, scene  # type: ignore[attr-defined]
        return test

    return decorate


def completed(vector: Vector) -> Vector:
    """Return a vector with what it expects computed by the product."""
    return RUNS[vector.id.partition("/")[0]][1](vector)


def difference(vector: Vector) -> str:
    """Return the first place where the product computes something else than a vector expects, empty for none."""
    try:
        computed = completed(vector)
    except Exception as error:  # a damaged vector may raise anything
        return f"cannot be computed: {type(error).__name__}: {error}"
    return first_difference(_json(vector), _json(computed), "").removeprefix(".")


def _json(vector: Vector) -> Any:
    return json.loads(msgspec.json.encode(vector))


def _ensure_shipped(lines: dict[str, bytes], vector: Vector) -> str:
    line = lines.get(vector.id)
    assert line is not None, f"{vector.id} does not ship: python tests/yielded_vectors.py packs it"
    if msgspec.json.encode(vector) != line:
        raise AssertionError(f"{vector.id}{first_difference(json.loads(line), _json(vector), '')}")
    return vector.id


@functools.cache
def shipped_files() -> dict[str, bytes]:
    """Return the files that ship, by path."""
    return dict(shipped())


@functools.cache
def shipped_lines(file: str) -> dict[str, bytes]:
    """Return the vectors that ship in ``kind/file`` as lines of JSON, by id."""
    lines = shipped_files()[f"{file}.json"].splitlines()[1:-1]
    return {json.loads(line.rstrip(b","))["id"]: line.rstrip(b",") for line in lines}


def shipped_vectors(file: str) -> list[Any]:
    """Return the vectors that ship in ``kind/file``, in their order."""
    return [msgspec.json.decode(line, type=RUNS[kind_of(file)][0]) for line in shipped_lines(file).values()]


def shipped_vectors_of(kind: str) -> list[Any]:
    """Return all vectors of a kind, in the order in which they ship."""
    files = [path.removesuffix(".json") for path in shipped_files() if kind_of(path) == kind]
    return [vector for file in files for vector in shipped_vectors(file)]


# What the tests yield, all together


def scenes() -> Iterator[tuple[str, Callable[[], Iterator[Vector]]]]:
    """Yield the file of each test that yields vectors and a call of it, for each of its parameters."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if "@yields(" not in path.read_text():
            continue
        spec = spec_from_file_location(f"yielding.{path.stem}", path)
        assert spec
        assert spec.loader
        module = module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        for test in vars(module).values():
            if inspect.isfunction(test) and hasattr(test, "vectors"):
                file, scene = test.vectors
                for arguments in _parameters(test):
                    yield file, functools.partial(scene, **arguments)


def _parameters(test: Any) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each run of a test, as its marks ``parametrize`` give them."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    for values in itertools.product(*(mark.args[1] for mark in marks)):
        arguments: dict[str, Any] = {}
        for mark, value in zip(marks, values, strict=True):
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            given = getattr(value, "values", value) if not isinstance(value, dict) else value
            one = given if len(names) > 1 or hasattr(value, "marks") else [given]
            arguments |= dict(zip((name.strip() for name in names), one, strict=True))
        yield arguments


def packed() -> dict[str, bytes]:
    """Return the files of the archive as the tests make them: the schema, then the vectors."""
    lines = {path.removesuffix(".json"): shipped_lines(path.removesuffix(".json")) for path in _paths()}
    order = {file: list(known) for file, known in lines.items()}
    made: dict[str, dict[str, bytes]] = {file: {} for file in order}
    for file, scene in scenes():
        before = None
        for vector in scene():
            assert vector.id not in made.setdefault(file, {}), f"two vectors are called {vector.id}"
            made[file][vector.id] = msgspec.json.encode(completed(vector))
            known = order.setdefault(file, [])
            if vector.id not in known:
                known.insert(len(known) if before is None else known.index(before) + 1, vector.id)
            before = vector.id
    files = {SCHEMA: msgspec.json.format(msgspec.json.encode(schema()), indent=1) + b"\n"}
    for file, ids in order.items():
        body = b",\n".join(made[file][name] for name in ids if name in made[file])
        files[f"{file}.json"] = b'{"kind": "%s", "vectors": [\n%s\n]}\n' % (kind_of(file).encode(), body)
    return files


def _paths() -> list[str]:
    return [path for path in shipped_files() if kind_of(path) != DOCUMENT]


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``suite.json`` and of the files of vectors, made from the structures."""
    types = [SuiteManifest, *(vector for vector, _ in RUNS.values())]
    found, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for struct in _structs_of(Drafted):
        _require(definitions.get(struct.__name__, {}), struct.computed)
    files = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, "vectors": {"type": "array", "items": vector}},
            "required": ["kind", "vectors"],
            "additionalProperties": False,
        }
        for kind, vector in zip(RUNS, found[1:], strict=True)
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


def pack(files: dict[str, bytes]) -> None:
    """Write the archive of the specification."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    import_module("yielded_vectors").pack(import_module("yielded_vectors").packed())
    print(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size:,} bytes", file=sys.stderr)
