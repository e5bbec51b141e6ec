"""Mutants of single modules: one operator, condition or number is changed, and the module's direct tests must notice.

Cosmic Ray makes the mutants and runs the tests, in a copy of the tree: the checkout is never written. What came of each
mutant stands in a session, one file for each module. Law: a session counts for the module and the direct tests that it
was made from, and a run goes on where the last one was stopped. Other modules do not count: without its session, every
mutant of a module is tried anew.
"""

import ast
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

_PALLETS = "pallets/relaycast_pallets"


def _tests(room: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{room}/test_{name}.py" for name in names)


_PROCESSING = (
    "proof_processing",
    "hostile_proofs",
    "proof_processing_budget",
    "proof_processing_cursor",
    "interrupted_passes",
)

DIRECT_TESTS: dict[str, tuple[str, ...]] = {
    f"{_PALLETS}/subscriber/node_cache.py": _tests(
        "pallets", "node_cache", "publisher_pass", "interrupted_passes", "trie_node_caching"
    ),
    "xcm/relaycast_xcm/barriers.py": _tests("xcm", "barriers"),
    f"{_PALLETS}/subscriber/proof_pass.py": _tests(
        "pallets",
        *("publisher_pass", "trie_node_caching", "subscriber", "oversize_nodes", "policies", "callback_meter"),
        *(*_PROCESSING, "tracked_proof"),
    ),
    f"{_PALLETS}/subscriber/walk.py": _tests(
        "pallets", "publisher_walk", "trie_depth_limit", "proof_processing", "hostile_proofs"
    ),
    f"{_PALLETS}/subscriber/pallet.py": _tests(
        "pallets",
        *("subscriber", "chosen_subscriptions", "subscription", "left_publishers", "subscription_changes"),
        "trie_depth_limit",
        *(*_PROCESSING, "tracked_proof", "carried_metering", "callback_meter"),
    ),
    f"{_PALLETS}/subscriber/plan.py": _tests(
        "pallets", "turns", "subscription_changes", "proof_processing_cursor", "interrupted_passes"
    ),
    f"{_PALLETS}/subscriber/storage.py": _tests(
        "pallets", "subscriber", "left_publishers", "subscription_changes", "interrupted_passes"
    ),
    f"{_PALLETS}/subscriber/variants/deletions.py": _tests("pallets", "deletion_told", "deletion_switched"),
    f"{_PALLETS}/subscriber/variants/cache_limit.py": _tests("pallets", "cache_limit", "policies"),
    f"{_PALLETS}/subscriber/variants/metered_state.py": _tests(
        "pallets", "carried_metering", "policies", "subscription_limits"
    ),
    "collator/relaycast_collator/chains.py": _tests("collator", "network", "outbox", "messages", "end_to_end"),
    f"{_PALLETS}/broadcaster/pallet.py": _tests(
        "pallets", "publish", "registration", "deregistration", "delete_keys", "ttl_expiration", "publish_limit"
    ),
}
"""The tests of each module that is mutated, those that notice soonest first; each selection takes at most 20 s."""

LEFT_BEHIND = shutil.ignore_patterns(".*", "*.nb[ic]", "build", "dist", "out", "site", "spark-warehouse")
"""What no direct test needs of a checkout."""

PLUGINS = ("-p", "no:cacheprovider", "-p", "xdist", "-p", "_hypothesis_pytestplugin")
"""Each mutant costs a start of pytest, which therefore loads no other plugins."""

Position = tuple[int, int]
"""A line, from 1 on, and a column, from 0 on."""


@dataclass(frozen=True, order=True, slots=True)
class Mutant:
    """A change by its text, because line numbers move; equal lines of one function are one."""

    function: str
    line: str
    becomes: str

    @classmethod
    def of(cls, function: str | None, diff: str) -> "Mutant":
        """Read a mutant from the difference that it makes."""
        changes = [line for line in diff.splitlines() if not line.startswith(("--- ", "+++ "))]
        old, new = (" ".join(" ".join(line[1:] for line in changes if line[:1] == sign).split()) for sign in "-+")
        return cls(function or "", old, new)


@dataclass(frozen=True, slots=True)
class Score:
    """What came of all mutants of a module; ``cpu_seconds`` is what this run took."""

    killed: int
    survivors: tuple[Mutant, ...]
    cpu_seconds: float


def judged(file: Path) -> dict[str, dict[Mutant, str]]:
    """Return the survivors that may stay, by module, with the reason."""
    return {
        module: {
            Mutant(entry["function"], entry["line"], becomes): entry["because"]
            for entry in entries
            for becomes in entry["becomes"]
        }
        for module, entries in tomllib.loads(file.read_text()).items()
    }


def mutate(module: str, tests: Sequence[str], *, root: Path, sessions: Path, scratch: Path) -> Score:
    """Try each mutant of ``module`` that was not tried before; ``module`` and ``tests`` are relative to ``root``.

    Raises ``ValueError`` where the tests fail without a mutant, and where Cosmic Ray does.
    """
    cpu = _cpu_seconds()
    session = sessions.absolute() / f"{_dotted(module)}-{_digest(root, [module, *tests])}.sqlite"
    copy = scratch / "copy"
    shutil.copytree(root, copy, ignore=LEFT_BEHIND)
    testing = [sys.executable, "-m", "pytest", "-q", "-x", *PLUGINS, *tests]
    began = time.monotonic()
    _run(testing, copy, "the direct tests fail without a mutant")
    patience = 10 + 5 * (time.monotonic() - began)
    (copy / "mutation.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "{module}"\ntimeout = {patience:.1f}\nexcluded-modules = []\n'
        f'test-command = "{" ".join(testing)}"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    tool = [sys.executable, "-m", "cosmic_ray.cli"]
    if not session.exists():
        session.parent.mkdir(parents=True, exist_ok=True)
        begun = session.with_suffix(".begun")
        _run([*tool, "init", "--force", "mutation.toml", str(begun)], copy, "no mutants were made")
        _leave_out_types(begun, (copy / module).read_text())
        begun.replace(session)
    _run([*tool, "exec", "mutation.toml", str(session)], copy, "the mutants were not tried")
    return _score(session, _cpu_seconds() - cpu)


def _dotted(module: str) -> str:
    return ".".join(Path(module).with_suffix("").parts)


def _digest(root: Path, places: Sequence[str]) -> str:
    digest = blake2b(digest_size=8)
    for place in places:
        digest.update(f"{place}\n".encode() + (root / place.partition("::")[0]).read_bytes())
    return digest.hexdigest()


def _cpu_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _run(command: list[str], copy: Path, otherwise: str) -> None:
    """Run a command in the copy, whose sources it imports; raise ``ValueError`` with what it said where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    settings = tomllib.loads((copy / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    environment |= {
        "HYPOTHESIS_PROFILE": "mutants",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join(str(copy / place) for place in settings["pythonpath"]),
    }
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ValueError(f"{otherwise}:\n{(ended.stdout + ended.stderr)[-4_000:]}")


def _leave_out_types(session: Path, source: str) -> None:
    """Mark as skipped what changes a ``|`` or ``*`` of a signature or annotation: that is no change of behaviour."""
    spans = list(_spans_of_types(ast.parse(source)))
    with closing(sqlite3.connect(session)) as db, db:
        rows = db.execute(
            "SELECT job_id, start_pos_row, start_pos_col FROM mutation_specs"
            " WHERE operator_name LIKE '%BinaryOperator%'"
        )
        skipped = [(job,) for job, *at in rows.fetchall() if any(low <= tuple(at) < high for low, high in spans)]
        db.executemany("INSERT INTO work_results (worker_outcome, job_id) VALUES ('SKIPPED', ?)", skipped)


def _spans_of_types(tree: ast.Module) -> Iterator[tuple[Position, Position]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield (node.lineno, node.col_offset), (node.body[0].lineno, node.body[0].col_offset)
        elif isinstance(node, ast.AnnAssign):
            hint = node.annotation
            yield (hint.lineno, hint.col_offset), (hint.end_lineno or hint.lineno, hint.end_col_offset or 0)


def _score(session: Path, cpu_seconds: float) -> Score:
    with closing(sqlite3.connect(session)) as db:
        rows = db.execute(
            "SELECT test_outcome, definition_name, diff, output FROM work_results JOIN mutation_specs USING (job_id)"
            " WHERE worker_outcome <> 'SKIPPED'"
        ).fetchall()
    for outcome, _, diff, output in rows:
        if outcome not in {"KILLED", "SURVIVED"}:
            raise ValueError(f"a mutant came to nothing:\n{diff}\n{output}")
    survivors = sorted(Mutant.of(function, diff) for outcome, function, diff, _ in rows if outcome == "SURVIVED")
    return Score(len(rows) - len(survivors), tuple(survivors), cpu_seconds)
