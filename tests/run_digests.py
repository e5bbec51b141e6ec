"""Digests of whole runs: what their files hold, part by part, for every preset and a small scenario of each feature.

They are stored in ``tests/digests/stored.json``; tests run every case on each engine and compare. Run as a program,
this file records digests again. It asks for a reason if one of them changes:

    .venv/bin/python tests/run_digests.py --reason "events of every core are kept" cores block-times

Law: a digest covers the results of a run, not its inputs. The run id, the version, the engine and the echoed scenario
are left out, because they change with every release and every new option. The report is left out, because it is prose.
The state root of the last relay block depends on every earlier block: the state holds the parent's hash and the newest
head of each parachain.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from relaycast.cli.command import execute

FOLDER = Path(__file__).parent / "digests"
STORED = FOLDER / "stored.json"

PRESETS = (
    "block-times",
    "config-sync",
    "griefed-publisher",
    "heartbeats",
    "heavy-messages",
    "hundred-subscribers",
    "late-subscriber",
    "many-keys",
    "mass-expiry",
    "moving-window",
    "oracle",
    "ring-roots",
)
SHORT_BLOCKS = {
    "griefed-publisher": 14,
    "heavy-messages": 5,
    "hundred-subscribers": 3,
    "late-subscriber": 4,
    "many-keys": 6,
    "mass-expiry": 4,
}
"""Relay blocks of a preset in the quick suite, where they are not ``SHORT``: enough for the first of what it shows."""

SHORT = 8

TABLES = ("blocks", "proofs", "keys", "deliveries")
OF_THE_CALL = ("run_id", "version", "engine", "scenario")
"""Members of ``run.json`` that say what was run and by what, not what came of it."""

Digests = dict[str, str]
"""By part: how much there is of it, and its digest."""

Stored = dict[str, dict[str, Any]]
"""By case: the ``parts``, and the ``reason`` for which they were recorded."""


def scenarios() -> list[str]:
    """Return the names of the small scenarios in ``tests/digests``."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def short_cases() -> dict[str, list[str]]:
    """Return the cases of the quick suite, by name: what ``relaycast run`` is given."""
    small = {name: [str(FOLDER / f"{name}.toml")] for name in scenarios()}
    return small | {f"{name} short": [name, "--blocks", str(SHORT_BLOCKS.get(name, SHORT))] for name in PRESETS}


def cases() -> dict[str, list[str]]:
    """Return every case: the presets at full length, too."""
    return short_cases() | {name: [name] for name in PRESETS}


def run(given: list[str], out: Path, *options: str) -> Digests:
    """Run a case and return its digests; whatever a run ends with is an outcome like any other."""
    code = execute(["run", *given, "--out", str(out), "--quiet", "--allow-oversize", "--allow-starved", *options])
    assert code in {0, 3}, f"relaycast run {' '.join(given)} ended with {code}"
    (folder,) = (path for path in out.iterdir() if not path.name.startswith("."))
    return digests_of(folder)


def digests_of(folder: Path) -> Digests:
    """Return the digests of a run that left its files in ``folder``."""
    told = json.loads((folder / "run.json").read_bytes())
    figures = {name: value for name, value in told.items() if name not in OF_THE_CALL}
    found = {
        "figures": _digest([json.dumps(figures, indent=1)]),
        "snapshot": _digest((folder / "pov.snapshot.toml").read_text().splitlines()),
        "state_root": figures["relaychain"]["state_root"],
    }
    for name in TABLES:
        file = folder / f"{name}.parquet"
        found[name] = _digest(_rows(file)) if file.exists() else "none"
    head, *events = (folder / "events.jsonl").read_text().splitlines()
    assert json.loads(head).keys() == {"schema", "run_id"}
    of_chains: dict[str, list[str]] = {}
    for line in events:
        of_chains.setdefault(str(json.loads(line)["chain"]), []).append(line)
    for chain in sorted(of_chains):
        found[f"events of {chain}"] = _digest(of_chains[chain])
    found["events"] = _digest(events)
    return found


def stored() -> Stored:
    """Return what is recorded."""
    return dict(json.loads(STORED.read_text())) if STORED.exists() else {}


def differences(now: Digests, before: Digests) -> list[str]:
    """Return a line for each part that differs."""
    return [
        f"{part}: {before.get(part, 'none')} is now {now.get(part, 'none')}"
        for part in sorted(now.keys() | before.keys())
        if now.get(part) != before.get(part)
    ]


def _rows(file: Path) -> Iterator[str]:
    """Yield the schema of a table and its rows; how they are compressed and cut into groups is left out."""
    table = pq.read_table(file)
    yield str(table.schema.remove_metadata())
    for row in table.to_pylist():
        yield json.dumps(row, default=bytes.hex)


def _digest(lines: Iterator[str] | list[str]) -> str:
    count, digest = 0, blake2b(digest_size=12)
    for count, line in enumerate(lines, 1):  # noqa: B007 - the last one counts
        digest.update(line.encode() + b"\n")
    return f"{count} {digest.hexdigest()}"


def main() -> int:
    """Record digests; return the exit code."""
    parser = argparse.ArgumentParser(description="Record the digests of runs anew, and say what changed.")
    parser.add_argument("--reason", help="why they change, kept beside them; without it nothing is written")
    parser.add_argument("cases", nargs="*", help="names of cases, all of them unless given; a preset has two")
    given = parser.parse_args()
    known, kept, changed = cases(), stored(), 0
    chosen = {name for name in known if not given.cases or name.removesuffix(" short") in given.cases}
    unknown = set(given.cases) - {name.removesuffix(" short") for name in known}
    if unknown:
        parser.error(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for name in sorted(chosen):
        with TemporaryDirectory() as out:
            now = run(known[name], Path(out), "--trie-engine", "plain")
        lines = differences(now, kept.get(name, {}).get("parts", {}))
        if lines:
            changed += 1
            print(f"{name}:", *lines, sep="\n  ")
            kept[name] = {"reason": given.reason, "parts": now}
    kept = {name: kept[name] for name in sorted(known) if name in kept}
    print(f"{changed} of {len(chosen)} cases changed")
    if changed and not given.reason:
        print("nothing was written: give a --reason", file=sys.stderr)
        return 1
    STORED.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
