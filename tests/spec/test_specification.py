"""The executable specification passes all vectors, and notices every kind of change in them."""

import ast
import copy
import importlib
import json
import operator
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import relaycast_spec
import spec_coverage
from relaycast_spec import vectors as spec
from rooms import ROOMS, ROOT

ROOM = Path(relaycast_spec.__file__).parent
CHAPTERS = sorted(ROOM.rglob("*.py"))


@pytest.fixture(scope="session")
def suite(conformance_suite: Path) -> Path:
    return conformance_suite


@pytest.fixture(scope="session")
def vectors(suite: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {kind: [] for kind in spec.KINDS}
    for file in sorted(suite.glob("*/*.json")):
        document = json.loads(file.read_text())
        found[document["kind"]] += document["vectors"]
    for some in found.values():
        random.Random(7).shuffle(some)
    return found


def test_every_vector_is_what_the_specification_computes(suite: Path) -> None:
    assert [line for _, _, found in spec.checked(suite) for line in found] == []


def test_the_suite_has_vectors_of_every_kind(vectors: dict[str, list[Any]]) -> None:
    assert {kind for kind, some in vectors.items() if some} == set(spec.KINDS)


def test_the_specification_checks_the_vectors_that_ship_with_it(suite: Path) -> None:
    shipping = [found for found in spec.checked(suite) if found[1]]
    assert list(spec.checked_shipped()) == shipping


@pytest.mark.parametrize(
    ("given", "computed", "said"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": [1, {"b": b"x"}]}, {"a": [1, {"b": b"y"}]}, '.a[1].b: the vector has "0x78", computed is "0x79"'),
        ({"a": [1]}, {"a": [1, 2]}, ".a: the vector has [1], computed is [1, 2]"),
        ({"a": 1}, {"a": 1, "b": 2}, ".b: the vector has null, computed is 2"),
        ({"a": 1, "b": 2}, {"a": 1}, ".b: the vector has 2, computed is null"),
        ({"a": {}}, {"a": []}, ".a: the vector has {}, computed is []"),
    ],
)
def test_the_first_difference_is_named_with_its_place(given: object, computed: object, said: str) -> None:
    assert spec.first_difference(given, computed, "") == said


def test_types_that_are_not_the_specifications_are_a_mismatch(suite: Path, tmp_path: Path) -> None:
    types = json.loads((suite / "types.json").read_text())
    types["types"]["Ttl"] = {"ttl": "u64", "when_inserted": "u32"}
    (tmp_path / "types.json").write_text(json.dumps(types))
    (tmp_path / "suite.json").write_text('{"files": []}')
    assert list(spec.checked(tmp_path)) == [("types.json", 0, ["types.json: other types than the specification's"])]


def test_the_specification_is_a_program_that_counts_and_fails(suite: Path, tmp_path: Path) -> None:
    """It runs from its folder, with nothing else on the path."""
    manifest = json.loads((suite / "suite.json").read_text())
    manifest["files"] = [entry for entry in manifest["files"] if entry["kind"] == "xcm"]
    (tmp_path / "suite.json").write_text(json.dumps(manifest))
    (tmp_path / "xcm").mkdir()
    for path in ("types.json", *(entry["path"] for entry in manifest["files"])):
        (tmp_path / path).write_bytes((suite / path).read_bytes())
    command = [sys.executable, "-S", "-m", "relaycast_spec.vectors", str(tmp_path)]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=ROOM.parent, env={}, capture_output=True, text=True, check=False)

    passed = run()
    lines = [f"{entry['path']}: {entry['vectors']} vectors, 0 mismatches\n" for entry in manifest["files"]]
    assert (passed.returncode, passed.stdout) == (0, "".join(lines))
    file = min(tmp_path.glob("xcm/*.json"))
    file.write_text(file.read_text().replace("0x05", "0x04", 1))
    failed = run()
    assert failed.returncode == 1
    assert "blake2_256 is 0x" in failed.stdout


@pytest.mark.parametrize("manifest", ["", "[1", "{}", '{"files": [1]}', '{"files": [{"path": "gone", "kind": "xcm"}]}'])
def test_a_suite_that_is_not_whole_is_refused_in_one_line(manifest: str, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(manifest)
    (tmp_path / "types.json").write_bytes((suite / "types.json").read_bytes())
    command = [sys.executable, "-S", "-m", "relaycast_spec.vectors", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOM.parent, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("vectors: ")


@pytest.mark.parametrize("kept", [0, 40, 200_000])
def test_an_archive_that_is_cut_off_is_refused_in_one_line(kept: int, tmp_path: Path) -> None:
    room = Path(shutil.copytree(ROOM, tmp_path / ROOM.name, ignore=shutil.ignore_patterns("__pycache__")))
    archive = room / "vectors" / spec.ARCHIVE.name
    archive.write_bytes(archive.read_bytes()[:kept])
    command = [sys.executable, "-S", "-m", "relaycast_spec.vectors"]
    ended = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("vectors: suite.tar.xz is no whole suite")


def test_the_specification_needs_the_standard_library_alone() -> None:
    imported = {name.split(".")[0] for path in CHAPTERS for name in imports(path)}
    assert imported <= {*sys.stdlib_module_names, "relaycast_spec"}


def test_only_the_command_for_vectors_imports_the_specification() -> None:
    users = [
        str(path.relative_to(ROOT))
        for room in ROOMS
        if room != "spec"
        for path in sorted((ROOT / room).rglob("*.py"))
        if any(name.split(".")[0] == "relaycast_spec" for name in imports(path))
    ]
    assert users == ["app/relaycast/cli/vectors.py"]


def test_every_scenario_stands_beside_one_rule() -> None:
    named = re.findall(r"^ *Scenario: (.+ / .+)$", "".join(map(Path.read_text, CHAPTERS)), re.MULTILINE)
    scenarios = spec_coverage.titles()
    assert len(scenarios) == 65
    assert sorted(named) == sorted(scenarios)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "specification").glob("[!i]*.md")), ids=lambda it: it.stem)
def test_a_note_in_the_margin_is_linked_to_a_rule_of_its_chapter(page: Path) -> None:
    links = re.findall(r"^- \[`(\w+)`\]\(#(relaycast_spec\.\w+)\.([\w.]+)\): ", page.read_text(), re.MULTILINE)
    assert len(links) == page.read_text().count("\n- ")
    for shown, module, rule in links:
        assert module == f"relaycast_spec.{page.stem}"
        assert rule.endswith(shown)
        assert operator.attrgetter(rule)(importlib.import_module(module))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


class Unfit(Exception):
    """The change has no place in this vector, or no effect on it."""


Change = Callable[[Any], object]


def fit(condition: object) -> Any:
    if not condition:
        raise Unfit


def flipped(text: str, at: int = -1) -> str:
    """Bytes with one of their digits changed."""
    fit(len(text) > 2)
    digits = list(text[2:])
    digits[at] = f"{int(digits[at], 16) ^ 1:x}"
    return "0x" + "".join(digits)


def flip(holder: Any, place: Any, at: int = -1) -> Any:
    holder[place] = flipped(holder[place], at)


def more(holder: Any, place: Any, by: int = 1) -> Any:
    holder[place] = int(holder[place]) + by


def swap(items: list[Any]) -> Any:
    fit(len(items) > 1 and items[0] != items[1])
    items[0], items[1] = items[1], items[0]


def one_less(v: Any, dimension: str) -> None:
    """A budget that is one short of what a complete pass consumed."""
    fit(v["expect"]["complete"] and v["expect"]["consumed"][dimension])
    v["budget"][dimension] = v["expect"]["consumed"][dimension] - 1


def other_order(v: Any) -> None:
    """Another seed, which an interrupted pass writes down."""
    fit(not v["expect"]["complete"] and v["expect"]["after"] and "order" not in v.get("policies", {}))
    fit(not any("654a13ca897758ebbe836bfdba86bed0" in key for key, _ in v["before"]))
    flip(v, "seed")


def cached_node(entries: list[Any]) -> list[Any]:
    return next(entry for entry in entries if "593f7d5e9cbfc102bbd1cabfd92ace55" in entry[0])


def kept_node(v: Any) -> bool:
    """Whether the first cached node stays, and was not read anew from the proof."""
    node = cached_node(v["before"])
    return node in v["expect"]["after"] and not any(node[1].endswith(v["nodes"][n][2:]) for n in v["given"])


def honest(v: Any) -> Any:
    fit("panic" not in v["expect"] and v.get("collected"))


def told(v: Any) -> bool:
    """Whether a block told the first key of its first subscription."""
    publisher, keys = v["subscriptions"][0]
    return any(callback[:2] == [publisher, keys[0]] for callback in v["expect"]["callbacks"])


def without_a_node(v: Any) -> None:
    honest(v)
    fit(v["expect"]["complete"])
    v["given"].pop()


def with_a_node_too_many(v: Any) -> None:
    honest(v)
    v["given"].append(next(n for n in range(len(v["nodes"])) if n not in v["given"]))


def less_deep(v: Any) -> None:
    honest(v)
    fit(any(callback[2] for callback in v["expect"]["callbacks"]))
    v["config"]["max_trie_depth"] = 0


def later(v: Any) -> None:
    fit(any(callback[3] and callback[3].startswith("0x01") for callback in v["expect"]["callbacks"]))
    more(v, "relay_parent_number")


def another_panic(v: Any) -> None:
    v["expect"]["panic"]["cause"] = {"UnusedNodes": "MissingNode"}.get(v["expect"]["panic"]["cause"], "UnusedNodes")


def no_panic(v: Any) -> None:
    v["expect"] = {"panic": {"cause": "UnusedNodes", "hashes": []}} if "panic" not in v["expect"] else {}


def default_policy(v: Any, kind: str) -> Any:
    fit(v["policies"][kind])
    del v["policies"]


def tells_a_deletion(v: Any) -> bool:
    return any(event.startswith("0x09") for event in v["expect"]["events"])


def step_with(v: Any, field: str) -> Any:
    """A step that does something."""
    return next(s for s in v["steps"] if field in s and s["expect"]["result"] == "ok" and s["expect"]["events"])


def failing(v: Any) -> Any:
    return next(step["expect"]["result"] for step in v["steps"] if isinstance(step["expect"]["result"], dict))


def smaller_limit(v: Any, limit: str, error: str) -> None:
    """One more than the limit that a refused step met."""
    fit(error in json.dumps(failing(v)))
    more(v["config"], limit, by=5_000)


def earlier(v: Any) -> None:
    fit(any(event.startswith("0xc804") for event in step_with(v, "on_idle")["expect"]["events"]))
    for step in v["steps"]:
        step["block"] = 0


def no_deposit(v: Any) -> None:
    fit(v["config"]["publisher_deposit"] and step_with(v, "call")["call"].startswith("0xc800"))
    v["config"]["publisher_deposit"] = 0


def other_answer(v: Any) -> None:
    allowed = {"runs": v["message"], "message_id": None, "credit_left": v["credit"]}
    v["expect"] = allowed if "error" in v["expect"] else {"error": "Unsupported"}


def lower_maximum(v: Any) -> None:
    fit("runs" in v["expect"] and v["barrier"]["barrier"] == "AllowPublishFrom")
    v["barrier"]["max_instructions"] = 0


def tight(v: Any) -> None:
    fit(v["expect"]["used"]["ref_time"])
    v["weight_limit"] = {"ref_time": 0, "proof_size": 0}


def not_strict(v: Any) -> None:
    fit(v["strict"] and v["expect"].get("error") in ("UnusedNodes", "DuplicateNode"))
    v["strict"] = False


def other_version(v: Any) -> None:
    fit(any(len(value) > 2 + 2 * 32 for _, value in v["pairs"]))
    v["state_version"] ^= 1


SUBSCRIBER: dict[str, Change] = {
    "a flipped byte in a node": lambda v: honest(v) or flip(v["nodes"], v["given"][0]),
    "a flipped byte in a cached node": lambda v: fit(kept_node(v)) or flip(cached_node(v["before"]), 1),
    "a missing cached node after the block": lambda v: v["expect"]["after"].remove(cached_node(v["expect"]["after"])),
    "another cached node after the block": lambda v: flip(cached_node(v["expect"]["after"]), 1),
    "a flipped byte in the relay root": lambda v: honest(v) or fit(v["static_keys"]) or flip(v, "relay_root"),
    "a flipped byte in the seed": other_order,
    "a flipped byte in a subscribed key": lambda v: fit(told(v)) or flip(v["subscriptions"][0][1], 0),
    "another publisher": lambda v: fit(told(v)) or more(v["subscriptions"][0], 0),
    "one byte less of budget": lambda v: one_less(v, "proof_size"),
    "less time of budget": lambda v: one_less(v, "ref_time"),
    "a lower depth limit": less_deep,
    "a later relay parent": later,
    "a dearer database": lambda v: more(v["config"], "read_ref_time") or fit(v["expect"]["consumed"]["ref_time"]),
    "a dropped callback": lambda v: v["expect"]["callbacks"].pop(),
    "swapped callbacks": lambda v: swap(v["expect"]["callbacks"]),
    "another value told": lambda v: flip(v["expect"]["callbacks"][0], 2),
    "another time to live told": lambda v: flip(v["expect"]["callbacks"][0], 3),
    "a moved cursor": lambda v: flip(v["expect"]["cursor"], 1),
    "a dropped cursor": lambda v: fit(v["expect"].pop("cursor")),
    "a moved owed key": lambda v: flip(v["expect"]["owed"], 1),
    "a moved stop": lambda v: flip(v["expect"]["stopped_at"], 1),
    "a pass that is complete or not": lambda v: more(v["expect"], "complete"),
    "more bytes consumed": lambda v: more(v["expect"]["consumed"], "proof_size"),
    "more time consumed": lambda v: more(v["expect"]["consumed"], "ref_time"),
    "a missing storage entry": lambda v: v["expect"]["after"].pop(),
    "another storage entry": lambda v: flip(v["expect"]["after"][0], 1),
    "a storage entry too many": lambda v: v["expect"]["after"].append(["0xff", "0x00"]),
    "an altered event": lambda v: flip(v["expect"]["events"], 0),
    "a dropped event": lambda v: v["expect"]["events"].pop(),
    "swapped events": lambda v: swap(v["expect"]["events"]),
    "a node less than given": without_a_node,
    "a node more than given": with_a_node_too_many,
    "a node given twice": lambda v: honest(v) or v["given"].append(v["given"][0]),
    "a node less than pruned": lambda v: v["pruned"].pop(),
    "a node less than collected": lambda v: v["collected"].remove(v["pruned"][0]),
    "a panic of another cause": another_panic,
    "a panic or none": no_panic,
    "another unused node": lambda v: flip(v["expect"]["panic"]["hashes"], 0),
    "numeric order forgotten": lambda v: fit(v["id"].endswith("/first")) or default_policy(v, "order"),
    "values-only metering forgotten": lambda v: default_policy(v, "metering"),
    "told deletions forgotten": lambda v: fit(tells_a_deletion(v)) or default_policy(v, "deletion"),
    "a refused call": lambda v: v["expect"]["call_results"].__setitem__(0, "NoCachedNodes"),
    "another call": lambda v: fit(v["expect"]["call_results"][0] == "ok") or more(v["calls"][0], 1),
    "another share of the messages": lambda v: more(v["share"], "downward_full"),
    "another hash of a key": lambda v: flip(v["hashed_keys"][0], 1),
    "another weight of the callbacks": lambda v: more(v["expect"]["callback_weight"], "ref_time"),
}
BROADCASTER: dict[str, Change] = {
    "a flipped byte in a call": lambda v: fit("keys" not in v["why"]) or flip(step_with(v, "call"), "call", at=5),
    "a flipped byte in a message": lambda v: flip(step_with(v, "xcm")["xcm"], "message"),
    "another sender": lambda v: more(step_with(v, "xcm")["xcm"], "from"),
    "another origin": lambda v: flip(step_with(v, "call")["origin"], "signed"),
    "another root of a step": lambda v: flip(v["steps"][0]["expect"], "root"),
    "an error renamed": lambda v: failing(v).update(error="Unknown"),
    "a cause renamed": lambda v: fit(failing(v)["cause"]) or failing(v).update(cause="Unknown"),
    "a refused step that succeeds": lambda v: (
        failing(v) and v["steps"][-1]["expect"].update(result={"error": "NotManager"})
    ),
    "more weight consumed": lambda v: more(v["steps"][0]["expect"]["consumed"], "ref_time"),
    "swapped events of a step": lambda v: swap(v["steps"][0]["expect"]["events"]),
    "a larger value limit": lambda v: smaller_limit(v, "max_value_length", "ValueTooLarge"),
    "more publishers allowed": lambda v: smaller_limit(v, "max_publishers", "TooManyPublishers"),
    "more keys allowed": lambda v: smaller_limit(v, "max_stored_keys", "TooManyKeys"),
    "no deposit": no_deposit,
    "steps before their time": earlier,
    "another balance before": lambda v: flip(v["before"]["top"][0], 1),
    "another entry after": lambda v: flip(v["after"]["children"][0]["entries"][0], 1),
    "a missing entry after": lambda v: v["after"]["top"].pop(),
    "another child root after": lambda v: flip(v["after"]["children"][0], "root"),
}
XCM: dict[str, Change] = {
    "a flipped byte in a message": lambda v: fit(v["test"] == "bytes") or flip(v, "encoded"),
    "another version": lambda v: fit(v["test"] == "bytes") or flip(v, "encoded", at=1),
    "another instruction in JSON": lambda v: v["message"].insert(0, "ClearError"),
    "an error of decoding renamed": lambda v: fit(v["test"] == "malformed") or v.update(error="Unknown"),
    "another answer of a barrier": other_answer,
    "another error of a barrier": lambda v: (
        fit(v["barrier"] and v["expect"]["error"]) or v["expect"].update(error="Unknown")
    ),
    "a lower maximum of instructions": lower_maximum,
    "another credit left": lambda v: more(v["expect"]["credit_left"], "ref_time"),
    "another message to run": lambda v: flip(v["expect"], "runs"),
    "another id of a message": lambda v: flip(v["expect"], "message_id"),
    "more weight used": lambda v: more(v["expect"]["used"], "ref_time"),
    "another failing instruction": lambda v: more(v["expect"], "index"),
    "a dropped publication": lambda v: v["expect"]["published"].pop(),
    "a publication that was refused": lambda v: more(v["expect"]["published"][0], "accepted"),
    "no weight allowed": tight,
}
COMPLETE = ("root", "proof", "compact")
PROOFS: dict[str, Change] = {
    "a flipped byte in a root": lambda v: fit(v["test"] in COMPLETE) or flip(v, "root"),
    "a flipped byte in a value": lambda v: fit(v["test"] == "root") or flip(v["pairs"][0], 1),
    "a flipped byte in a key": lambda v: fit(v["test"] == "root") or flip(v["pairs"][0], 0),
    "the other state version": other_version,
    "a missing node": lambda v: fit(v["test"] in COMPLETE) or v["nodes"].pop(0),
    "another value found": lambda v: flip(v["expect"]["values"], 0),
    "an absent key that is there": lambda v: v["expect"]["values"].__setitem__(
        v["expect"]["values"].index(None), "0x00"
    ),
    "an error of verification renamed": lambda v: fit(v["expect"]["error"]) or v["expect"].update(error="Unknown"),
    "a proof that is not strict": not_strict,
    "a flipped byte in a compact proof": lambda v: fit(v["test"] == "compact") or flip(v["compact"], 0),
    "swapped items of a compact proof": lambda v: fit(v["test"] == "compact") or swap(v["compact"]),
    "an error of a compact proof renamed": lambda v: fit(v["test"] == "compact-error") or v.update(error="Unknown"),
    "another partial key": lambda v: more(v["node"]["partial"], 0),
    "a node that does not decode": lambda v: fit(v["node"]) or v.update(encoded="0x01"),
}
CHANGES = {
    (kind, name): change
    for kind, changes in (("subscriber", SUBSCRIBER), ("broadcaster", BROADCASTER), ("xcm", XCM), ("proofs", PROOFS))
    for name, change in changes.items()
}
ENOUGH = 5
"""The number of vectors in which each change is tried, in an order drawn once."""


@pytest.mark.parametrize(("kind", "name"), CHANGES)
def test_a_changed_vector_fails(vectors: dict[str, list[Any]], kind: str, name: str) -> None:
    tried = list(islice(changed(vectors[kind], CHANGES[kind, name]), ENOUGH))
    assert tried, "no vector has a place for this change"
    for vector in tried:
        assert list(spec.mismatches(kind, vector)), vector["id"]


def changed(some: list[Any], change: Change) -> Iterator[Any]:
    """Vectors that a change has a place in, changed."""
    for vector in some:
        other = copy.deepcopy(vector)
        try:
            change(other)
        except (Unfit, LookupError, TypeError, ValueError, AttributeError, StopIteration):
            continue
        if other != vector:
            yield other
