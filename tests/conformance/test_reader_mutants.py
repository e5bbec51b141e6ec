"""The suite notices a reader with one rule changed: rules that no other vector holds to the byte."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent

PRUNES = "not 0 < first < stopped"
TOTAL = 'new > max(total, config["max_total_storage_size"])'
ALONE = 'publisher.change == "NONE" and not (publisher in self.met and (publisher.told or not known))'
KNOWN = "publisher.root is not None or publisher.has_bases"
OVER = "if not fits(used, declared):"
FIELDS = "*spot, declared, used)"
RESERVED = "40 * len(across) + (max(0, across[0] - 40) if across else 0)"
INLINE = "return Node.of(wanted)\n"
UNPAID = "if wanted not in publisher.paid"


class Mutant(NamedTuple):
    """One line of a module of the reader that is another one; ``files`` of the suite have a vector that notices."""

    module: str
    line: str
    other: str
    files: str


MUTANTS = {
    "inline nodes count": Mutant("tries", "self.above + (len(self.reference) == 32)", "self.above + 1", "caches"),
    "inline nodes are charged": Mutant("walk", INLINE, "return self.pay(9) or Node.of(wanted)\n", "caches"),
    "inline nodes of the old trie are unknown": Mutant(
        "walk", INLINE, "return Node.of(wanted) if new else Node()\n", "caches"
    ),
    "the depth limit holds for inline nodes": Mutant(
        "walk",
        "if len(wanted) != 32:",
        'if len(wanted) != 32 and (not new or place.above < self.config["max_trie_depth"]):',
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
        "subscriber", "if stopped_in == para else first", "if stopped_in == para else len(publisher.keys)", "caches"
    ),
    "a node of the proof is free in a cache": Mutant(
        "walk", UNPAID, f"{UNPAID} and wanted not in self.accessed", "caches"
    ),
    "the limit refuses each update above it": Mutant(
        "broadcaster", TOTAL, 'new > config["max_total_storage_size"]', "publication"
    ),
    "the limit refuses no update above it": Mutant(
        "broadcaster", TOTAL, f'{TOTAL} and total <= config["max_total_storage_size"]', "publication"
    ),
    "an update that keeps the total is refused": Mutant(
        "broadcaster", TOTAL, 'new > config["max_total_storage_size"] and (new >= total)', "publication"
    ),
    "an external child root is taken": Mutant("tries", "any(node.hashed or len(", "any(len(", "compact"),
    "an external child root is passed over": Mutant(
        "tries", "node.value is not None:", "node.value is not None and not node.hashed:", "compact"
    ),
    "each unchanged publisher gets a bitmap": Mutant("subscriber", ALONE, "False", "deletions"),
    "a publisher without news gets a bitmap": Mutant(
        "subscriber", ALONE, ALONE.replace(" and (publisher.told or not known)", ""), "deletions"
    ),
    "a publisher that is not read gets a bitmap": Mutant(
        "subscriber", ALONE, ALONE.replace("publisher in self.met and ", ""), "deletions"
    ),
    "bases alone are not known": Mutant("subscriber", KNOWN, "publisher.root is not None", "deletions"),
    "a root alone is not known": Mutant("subscriber", KNOWN, "publisher.has_bases", "deletions"),
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
        'declared, self.config["callback_limit"])',
        'self.config["callback_limit"], declared)',
        "callback-weights",
    ),
    "a key beyond the budget is beyond the limit": Mutant(
        "subscriber", "self.begin and self.limited:", "self.begin and self.declared:", "callback-weights"
    ),
    "no room is kept for the first message": Mutant("subscriber", RESERVED, "40 * len(across)", "budget-scenarios"),
    "no room is kept for hashes": Mutant("subscriber", RESERVED, "across[0] if across else 0", "budget-scenarios"),
    "a short message gives room back": Mutant(
        "subscriber", RESERVED, RESERVED.replace("max(0, across[0] - 40)", "across[0] - 40"), "budget-scenarios"
    ),
    "room is kept for the longest message": Mutant(
        "subscriber", RESERVED, RESERVED.replace("across[0]", "max(across)"), "budget-scenarios"
    ),
}


def ended(program: Path, suite: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", "-B", program, suite], capture_output=True, text=True, check=False)


def copied(folder: Path, suite: Path, file: str) -> tuple[Path, Path]:
    """Return a copy of the reader, and of the suite with one file."""
    reader, part = folder / "conformance", folder / "suite"
    reader.mkdir()
    for path in HERE.glob("*.py"):
        if not path.name.startswith("test_"):
            (reader / path.name).write_text(path.read_text())
    manifest = json.loads((suite / "suite.json").read_text())
    manifest["files"] = [entry for entry in manifest["files"] if Path(entry["path"]).stem == file]
    for path in ("types.json", *(entry["path"] for entry in manifest["files"])):
        (part / path).parent.mkdir(parents=True, exist_ok=True)
        (part / path).write_bytes((suite / path).read_bytes())
    (part / "suite.json").write_text(json.dumps(manifest))
    return reader, part


@pytest.mark.parametrize("file", sorted({mutant.files for mutant in MUTANTS.values()}))
def test_the_rules_as_they_are_agree(conformance_suite: Path, tmp_path: Path, file: str) -> None:
    reader, part = copied(tmp_path, conformance_suite, file)
    passed = ended(reader / "reader.py", part)
    assert passed.returncode == 0, passed.stdout


@pytest.mark.parametrize("name", MUTANTS)
def test_a_vector_notices_a_changed_rule(conformance_suite: Path, tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[name]
    reader, part = copied(tmp_path, conformance_suite, mutant.files)
    module = reader / f"{mutant.module}.py"
    text = module.read_text()
    assert text.count(mutant.line) == 1
    module.write_text(text.replace(mutant.line, mutant.other))
    failed = ended(reader / "reader.py", part)
    assert failed.returncode == 1, failed.stderr
    assert " 0 mismatches" not in failed.stdout
    assert "Error" not in failed.stdout
