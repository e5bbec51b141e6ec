"""The suite notices a specification with one rule changed: rules that no other vector holds to the byte."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import relaycast_spec

ROOM = Path(relaycast_spec.__file__).parent

PRUNES = "not 0 < first < stopped"
TOTAL = "new_total > max(total, config.max_total_storage_size)"
ALONE = 'publisher.subscription_change == "NONE" and not (has_news and (publisher.changes or not has_base))'
KNOWN = "publisher.root is not None or publisher.has_mixed_bases"
OVER = "if not fits(used, declared):"
FIELDS = "*spot, declared, used)"
FIRST = "max(0, horizontal[0] - HASHED_HORIZONTAL)"
NEW_INLINE = "if not is_hash(wanted):\n            return Node.decode(wanted)\n        if place.above"
OLD_INLINE = "return Node.decode(wanted)\n        return self.read_cached"
UNPAID = "if wanted not in publisher.paid"


class Mutant(NamedTuple):
    """One line of a chapter that is another one; ``files`` of the suite have a vector that notices."""

    module: str
    line: str
    other: str
    files: str


MUTANTS = {
    "inline nodes count": Mutant("tries", "self.above + is_hash(self.reference)", "self.above + 1", "caches"),
    "inline nodes are charged": Mutant(
        "proof_pass", NEW_INLINE, NEW_INLINE.replace("return ", "return self.pay(9, is_structure=True) or "), "caches"
    ),
    "inline nodes of the old trie are unknown": Mutant(
        "proof_pass", OLD_INLINE, OLD_INLINE.replace("Node.decode(wanted)", "Node()"), "caches"
    ),
    "the depth limit holds for inline nodes": Mutant(
        "proof_pass",
        NEW_INLINE,
        NEW_INLINE.replace("(wanted):", "(wanted) and place.above < self.config.max_trie_depth:"),
        "caches",
    ),
    "each interrupted pass prunes": Mutant("subscriber", PRUNES, "True", "caches"),
    "no interrupted pass prunes": Mutant("subscriber", PRUNES, "False", "caches"),
    "a pass from the first key on prunes nothing": Mutant(
        "subscriber", PRUNES, PRUNES.replace("0 <", "0 <="), "caches"
    ),
    "a pass from the second key on prunes": Mutant("subscriber", PRUNES, PRUNES.replace("0 <", "1 <"), "caches"),
    "a pass that stops where it begins prunes nothing": Mutant(
        "subscriber", PRUNES, PRUNES.replace("first <", "first <="), "caches"
    ),
    "a pass that stops elsewhere prunes nothing": Mutant(
        "subscriber", "is not None else first", "is not None else len(publisher.keys)", "caches"
    ),
    "a node of the proof is free in a cache": Mutant(
        "proof_pass", UNPAID, f"{UNPAID} and wanted not in self.accessed", "caches"
    ),
    "the limit refuses each update above it": Mutant(
        "broadcaster", TOTAL, "new_total > config.max_total_storage_size", "publication"
    ),
    "the limit refuses no update above it": Mutant(
        "broadcaster", TOTAL, f"{TOTAL} and total <= config.max_total_storage_size", "publication"
    ),
    "an update that keeps the total is refused": Mutant(
        "broadcaster", TOTAL, "new_total > config.max_total_storage_size and new_total >= total", "publication"
    ),
    "an external child root is taken": Mutant("tries", "any(node.hashed or len(", "any(len(", "compact"),
    "an external child root is passed over": Mutant(
        "tries", "node.value is not None:", "node.value is not None and not node.hashed:", "compact"
    ),
    "each unchanged publisher gets a bitmap": Mutant("subscriber", ALONE, "False", "deletions"),
    "a publisher without news gets a bitmap": Mutant(
        "subscriber", ALONE, ALONE.replace(" and (publisher.changes or not has_base)", ""), "deletions"
    ),
    "a publisher that is not read gets a bitmap": Mutant(
        "subscriber", ALONE, ALONE.replace("has_news and ", ""), "deletions"
    ),
    "bases alone are not known": Mutant("subscriber", KNOWN, "publisher.root is not None", "deletions"),
    "a root alone is not known": Mutant("subscriber", KNOWN, "publisher.has_mixed_bases", "deletions"),
    "a bitmap has a byte too many": Mutant(
        "subscriber", "(len(publisher.keys) + 7) // 8", "len(publisher.keys) // 8 + 1", "deletions"
    ),
    "more proof size alone is no excess": Mutant(
        "subscriber", OVER, 'if used["ref_time"] > declared["ref_time"]:', "callback-weights"
    ),
    "more time alone is no excess": Mutant(
        "subscriber", OVER, 'if used["proof_size"] > declared["proof_size"]:', "callback-weights"
    ),
    "used and declared weights change places": Mutant(
        "subscriber", FIELDS, "*spot, used, declared)", "callback-weights"
    ),
    "the larger weights are told as used": Mutant(
        "subscriber", FIELDS, "*spot, declared, {n: max(used[n], declared[n]) for n in used})", "callback-weights"
    ),
    "told deletions are never overweight": Mutant(
        "subscriber",
        "yield *spot, None, None\n",
        "yield *spot, None, None\n                continue\n",
        "callback-weights",
    ),
    "weight and limit change places": Mutant(
        "subscriber",
        "declared, self.block.config.callback_limit)",
        "self.block.config.callback_limit, declared)",
        "callback-weights",
    ),
    "a key beyond the budget is beyond the limit": Mutant(
        "subscriber", "if done.stopped_by_callbacks:", "if self.block.declared_weights:", "callback-weights"
    ),
    "no room is kept for the first message": Mutant("messages", FIRST, "0", "budget-scenarios"),
    "no room is kept for hashes": Mutant(
        "messages",
        "HASHED_HORIZONTAL * len(horizontal)",
        "HASHED_HORIZONTAL if horizontal else 0",
        "budget-scenarios",
    ),
    "a short message gives room back": Mutant(
        "messages", FIRST, "horizontal[0] - HASHED_HORIZONTAL", "budget-scenarios"
    ),
    "room is kept for the longest message": Mutant(
        "messages", FIRST, FIRST.replace("horizontal[0]", "max(horizontal)"), "budget-scenarios"
    ),
}


def ended(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-B", "-m", "relaycast_spec.vectors", "suite"]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)


def copied(folder: Path, suite: Path, file: str) -> Path:
    """Return a copy of the specification, with a part of the suite beside it that has one file."""
    room, part = folder / ROOM.name, folder / "suite"
    shutil.copytree(ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = json.loads((suite / "suite.json").read_text())
    manifest["files"] = [entry for entry in manifest["files"] if Path(entry["path"]).stem == file]
    for path in ("types.json", *(entry["path"] for entry in manifest["files"])):
        (part / path).parent.mkdir(parents=True, exist_ok=True)
        (part / path).write_bytes((suite / path).read_bytes())
    (part / "suite.json").write_text(json.dumps(manifest))
    return room


@pytest.mark.parametrize("file", sorted({mutant.files for mutant in MUTANTS.values()}))
def test_the_rules_as_they_are_agree(conformance_suite: Path, tmp_path: Path, file: str) -> None:
    copied(tmp_path, conformance_suite, file)
    passed = ended(tmp_path)
    assert passed.returncode == 0, passed.stdout


@pytest.mark.parametrize("name", MUTANTS)
def test_a_vector_notices_a_changed_rule(conformance_suite: Path, tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[name]
    module = copied(tmp_path, conformance_suite, mutant.files) / f"{mutant.module}.py"
    text = module.read_text()
    assert text.count(mutant.line) == 1
    module.write_text(text.replace(mutant.line, mutant.other))
    failed = ended(tmp_path)
    assert failed.returncode == 1, failed.stderr
    assert " 0 mismatches" not in failed.stdout
    assert "Error" not in failed.stdout
