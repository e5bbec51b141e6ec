"""The conformance suite as files: the same bytes, a schema that holds, digests, and folders that are left alone."""

import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import msgspec
import pytest

from command_line import Command, Refused
from relaycast.refusal import BadInput
from relaycast.vectors import suite
from relaycast.vectors.kinds import KINDS
from relaycast.vectors.suite import MANIFEST, README, SCHEMA, SuiteFault, check, contents, export
from relaycast.vectors.vector import LARGEST_PLAIN_NUMBER
from relaycast_trie import blake2_256
from small_disks import FULL, full_disk
from spec_coverage import titles

MOST_BYTES = 10_000_000

KIND_OF = {
    "Publisher Registration": "broadcaster",
    "Publisher Deregistration": "broadcaster",
    "XCM Publish Instruction": "broadcaster",
    "AllowPublishFrom Barrier": "xcm",
    "Data Storage Limits": "broadcaster",
    "TTL Expiration": "broadcaster",
    "Manual Key Deletion": "broadcaster",
    "Relay Proof Collection": "proofs",
    "Subscription Handler": "subscriber",
    "Change Detection": "subscriber",
    "Trie Depth Limit": "subscriber",
    "Trie Node Caching": "subscriber",
    "PoV Budget Constraint": "subscriber",
    "Publisher Prioritization": "subscriber",
    "Proof Processing": "subscriber",
}
"""Which kind of vectors executes the scenarios of a requirement."""


@pytest.fixture(scope="module")
def exported(conformance_suite: Path) -> Path:
    """Return the folder of a suite; tests that change it take a copy."""
    return conformance_suite


@pytest.fixture(scope="module")
def files(exported: Path) -> dict[str, Any]:
    """Return the files of vectors, read as JSON, by path."""
    names = [file.path for file in suite.read_manifest(exported).files if file.vectors]
    return {name: json.loads((exported / name).read_bytes()) for name in names}


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the suite to proofs, made once, for tests of folders."""
    kept = tuple(kind for kind in KINDS if kind.name == "proofs")
    monkeypatch.setattr(suite, "KINDS", kept)
    made = cache(lambda seed: list(contents(seed)))
    monkeypatch.setattr(suite, "contents", lambda seed: iter(made(seed)))


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def vectors_in(files: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for file in files.values():
        yield from file["vectors"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(exported: Path, tmp_path: Path) -> None:
    export(tmp_path / "again")
    assert bytes_in(tmp_path / "again") == bytes_in(exported)


@pytest.mark.slow
def test_another_seed_gives_other_random_vectors_and_the_same_written_ones(files: dict[str, Any]) -> None:
    other = {path: data for path, _, vectors, data in contents(8) if vectors}
    assert other.keys() == files.keys()
    assert json.loads(other["broadcaster/registration.json"]) == files["broadcaster/registration.json"]
    assert json.loads(other["broadcaster/histories.json"]) != files["broadcaster/histories.json"]


def test_the_suite_is_smaller_than_ten_megabytes(exported: Path) -> None:
    assert sum(map(len, bytes_in(exported).values())) < MOST_BYTES


def test_the_manifest_lists_every_file_with_its_vectors(exported: Path, files: dict[str, Any]) -> None:
    manifest = suite.read_manifest(exported)
    assert {file.path for file in manifest.files} | {MANIFEST} == set(bytes_in(exported))
    assert manifest.vectors == sum(len(file["vectors"]) for file in files.values())
    for file in manifest.files:
        assert file.bytes == (exported / file.path).stat().st_size
        assert file.vectors == len(files.get(file.path, {"vectors": []})["vectors"])
        assert file.vectors == 0 or file.path.startswith(f"{file.kind}/")


@pytest.mark.slow
def test_every_file_follows_the_schema(exported: Path, files: dict[str, Any]) -> None:
    schema = json.loads((exported / SCHEMA).read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for file in [json.loads((exported / MANIFEST).read_bytes()), *files.values()]:
        validator.validate(file)


@pytest.mark.parametrize("missing", ["expect", "why", "source"])
def test_the_schema_refuses_a_vector_without_what_it_must_have(
    missing: str, exported: Path, files: dict[str, Any]
) -> None:
    file = json.loads(json.dumps(files["xcm/executions.json"]))
    del file["vectors"][0][missing]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads((exported / SCHEMA).read_bytes())).validate(file)


def test_every_vector_says_once_who_it_is_and_why(files: dict[str, Any]) -> None:
    ids = [vector["id"] for vector in vectors_in(files)]
    assert len(set(ids)) == len(ids)
    for path, file in files.items():
        for vector in file["vectors"]:
            assert vector["id"].startswith(f"{file['kind']}/"), path
            assert "\n" not in vector["why"]
            assert set(vector["source"]) in (
                {"requirement", "scenario"}, {"invariant"}, {"attack"}, {"trap"}, {"upstream"}
            )  # fmt: skip


def test_no_number_is_rounded_by_a_reader_of_floats(exported: Path) -> None:
    def whole(text: str) -> int:
        assert abs(int(text)) <= LARGEST_PLAIN_NUMBER
        return int(text)

    for data in bytes_in(exported).values():
        if data.startswith(b"{"):
            json.loads(data, parse_int=whole)


def test_scenarios_are_named_as_the_specification_does(files: dict[str, Any]) -> None:
    assert covered(files) <= set(titles())
    assert {title.partition(" / ")[0] for title in titles()} == set(KIND_OF)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_scenario_of_a_kind_has_a_vector_of_that_kind(kind: str, files: dict[str, Any]) -> None:
    wanted = {title for title in titles() if KIND_OF[title.partition(" / ")[0]] == kind}
    own = {path: file for path, file in files.items() if file["kind"] == kind}
    assert wanted - covered(own) == set()


def covered(files: dict[str, Any]) -> set[str]:
    sources = (vector["source"] for vector in vectors_in(files))
    return {f"{source['requirement']} / {source['scenario']}" for source in sources if "scenario" in source}


def test_a_policy_is_named_where_the_configuration_differs(files: dict[str, Any]) -> None:
    for path, file in files.items():
        for vector in file["vectors"] if path.startswith("broadcaster/") else ():
            config, policies = vector["config"], vector.get("policies", {})
            assert policies.get("registration", "public") == config["registration"]
            assert policies.get("ttl_key_hasher", "Twox64Concat") == config["ttl_key_hasher"]
            assert (policies.get("slash_on_force") == "true") == config["slash_on_force"]


@pytest.mark.slow
def test_a_suite_that_nobody_touched_is_as_computed(exported: Path) -> None:
    assert check(exported) == suite.read_manifest(exported)


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


@pytest.mark.slow
@pytest.mark.parametrize(("path", "pattern", "changed"), FAULTS)
def test_a_flipped_byte_is_found_with_its_file_and_vector(path: str, pattern: str, changed: str, copy: Path) -> None:
    lines = (copy / path).read_text().splitlines(keepends=True)
    name = json.loads(lines[5].rstrip(",\n"))["id"]
    lines[5], count = re.subn(pattern, changed, lines[5], count=1)
    assert count == 1
    (copy / path).write_text("".join(lines))
    with pytest.raises(SuiteFault) as fault:
        check(copy)
    assert (fault.value.path, fault.value.vector) == (path, name)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("number", range(16))
def test_any_flipped_bit_is_found_in_its_line(number: int, tmp_path: Path) -> None:
    folder, random = tmp_path / "suite", Random(number)
    export(folder)
    path = random.choice([file.path for file in suite.read_manifest(folder).files if file.vectors])
    data = bytearray((folder / path).read_bytes())
    start, end = data.index(b"\n") + 1, data.rindex(b"\n]}")
    at = random.randrange(start, end)
    line = data[data.rindex(b"\n", 0, at) + 1 :].split(b"\n")[0]
    data[at] ^= 1 << random.randrange(8)
    (folder / path).write_bytes(data)
    with pytest.raises(SuiteFault) as fault:
        check(folder)
    assert fault.value.path == path
    assert fault.value.vector == json.loads(line.rstrip(b","))["id"]


def test_a_vector_that_was_computed_otherwise_is_found_though_the_digests_fit(copy: Path) -> None:
    path = copy / "xcm" / "barriers.json"
    changed = path.read_bytes().replace(b'"error":"BadFormat"', b'"error":"Overweight"', 1)
    path.write_bytes(changed)
    manifest = suite.read_manifest(copy)
    digest = f"0x{blake2_256(changed).hex()}"
    listed = [
        msgspec.structs.replace(file, blake2_256=digest) if file.path == "xcm/barriers.json" else file
        for file in manifest.files
    ]
    (copy / MANIFEST).write_bytes(suite.encoded_manifest(msgspec.structs.replace(manifest, files=listed)))
    with pytest.raises(SuiteFault, match=r'expect\.error: the file has "Overweight", computed is "BadFormat"'):
        check(copy)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("path", [README, "proofs/children.json"])
def test_a_file_that_is_missing_or_changed_is_named(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    export(folder)
    (folder / path).write_bytes((folder / path).read_bytes() + b"\n\n")
    with pytest.raises(SuiteFault, match=path):
        check(folder)
    (folder / path).unlink()
    with pytest.raises(SuiteFault, match="no such file"):
        check(folder)


@pytest.mark.usefixtures("small")
def test_a_vector_that_was_taken_out_is_missed(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    export(folder)
    lines = (folder / "proofs" / "tries.json").read_text().splitlines(keepends=True)
    del lines[7]
    (folder / "proofs" / "tries.json").write_text("".join(lines))
    with pytest.raises(SuiteFault, match=r"proofs/tries.json: \d+ vectors, expected \d+"):
        check(folder)


@pytest.mark.usefixtures("small")
def test_a_suite_is_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    export(folder, seed=1)
    first = bytes_in(folder)
    export(folder, seed=2)
    assert bytes_in(folder).keys() == first.keys()
    assert bytes_in(folder) != first
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]


@pytest.mark.usefixtures("small")
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
        export(folder)
        (folder / "xcm").mkdir()
        (folder / "xcm" / "notes.txt").write_text("mine")
    if kind == "here":
        monkeypatch.chdir(folder)
    before = bytes_in(tmp_path)
    with pytest.raises(BadInput, match="expected a new folder, an empty one or one that holds a suite"):
        export(folder)
    assert bytes_in(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("after", [0, 2, 4])
@pytest.mark.parametrize("is_there", [False, True])
def test_an_export_that_is_interrupted_leaves_everything_as_it_was(
    after: int, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "above" / "suite"
    if is_there:
        export(folder, seed=1)
    before = bytes_in(tmp_path)
    written = suite.contents

    def interrupted(seed: int) -> Iterator[tuple[str, str, int, bytes]]:
        for at, content in enumerate(written(seed)):
            if at == after:
                raise KeyboardInterrupt
            yield content

    monkeypatch.setattr(suite, "contents", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(folder)
    assert bytes_in(tmp_path) == before
    assert [path.name for path in tmp_path.rglob("*") if path.name.startswith(".")] == []
    assert folder.exists() == is_there


@pytest.mark.usefixtures("small")
def test_the_command_writes_and_checks_a_suite(relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast("vectors", "export", "deep/suite")
    assert ended.code == 0
    manifest = suite.read_manifest(tmp_path / "deep" / "suite")
    assert f"{manifest.vectors} vectors, {manifest.size:,} bytes" in ended.out
    told = relaycast("vectors", "export", "deep/suite", "--json").json
    assert told["vectors"] == {"proofs": manifest.vectors}
    assert told["blake2_256"] in ended.out
    assert relaycast("vectors", "check", "deep/suite").out == f"{manifest.vectors} vectors are as computed here\n"
    assert relaycast("vectors", "check", "deep/suite", "--json").json["vectors"] == {"proofs": manifest.vectors}


@pytest.mark.usefixtures("small")
def test_the_command_names_what_differs_and_ends_with_1(relaycast: Command, tmp_path: Path) -> None:
    relaycast("vectors", "export", "suite")
    file = tmp_path / "suite" / "proofs" / "children.json"
    file.write_bytes(file.read_bytes().replace(b'"root":"0x', b'"root":"0xf', 1))
    for flags in ((), ("--json",)):
        ended = relaycast("vectors", "check", "suite", *flags)
        assert ended.code == 1
        assert "proofs/children.json" in ended.out
        assert "proofs/child/name-0" in ended.out


@pytest.mark.usefixtures("small")
def test_slips_are_refused_in_one_line(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert refused("vectors", "export", "mine").startswith("DIR mine: got notes.txt in it, expected a new folder")
    assert refused("vectors", "check", "mine").startswith("DIR mine: got no suite")
    assert "--seed" in refused("vectors", "export", "new", "--seed", "-1")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("small")
def test_a_full_disk_leaves_nothing(relaycast: Command, tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk") as disk:
        ended = relaycast("vectors", "export", "disk/room/suite")
        assert list(disk.iterdir()) == []
    assert ended.code == 2
    assert any(reason in ended.err for reason in FULL)
