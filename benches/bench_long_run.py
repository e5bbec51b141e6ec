"""Very many blocks on Spark, by the command that users run: how fast each phase goes, and what each process holds.

::

    python benches/bench_long_run.py [--scenario long_run.toml] [--blocks 100000] [--cores 2] [--out out] [--json FILE]

Every few seconds all processes of the run are looked at: driver, JVM, the daemon that workers fork from, workers. What
was seen is kept in ``OUT/<scenario>-<blocks>.seen.jsonl``, so that the same command after an interruption goes on with
the run and with the table. Seconds are by the clock: on a machine with other work, processor time says more.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("trie", "xcm", "pallets", "collator", "spark", "app")
sys.path[:0] = [str(ROOT / room) for room in ROOMS]

from relaycast.bench.processes import (  # noqa: E402 - the rooms are put on the path above
    DAEMON,
    DRIVER,
    JVM,
    WORKER,
    family,
)

LOOK_SECONDS = 5.0
ROLES = (DRIVER, JVM, DAEMON, WORKER)
"""What lasts: the shell that starts the JVM does not."""

ROWS = 10
"""Moments of the run that the table of memory shows."""

STAGE = re.compile(r"relaycast: (?P<stage>relay chain|replayed|written) (?:goes on after )?(?P<done>[\d,]+) of ")
BEHIND = {"relay chain": None, "replayed": None, "written": "replayed"}
"""The stages of a run, and which of them has to be done before another begins."""

Look = dict[str, Any]
"""What was seen at one moment: ``attempt``, ``second`` of it, ``done`` blocks by stage, ``processes``."""


@dataclass(slots=True)
class Watch:
    """A run under way: its progress lines are read and passed on, its processes are measured at intervals."""

    process: "subprocess.Popen[str]"
    kept: IO[str]
    attempt: int
    began: float = field(default_factory=time.perf_counter)
    done: dict[str, int] = field(default_factory=dict)

    def until_the_end(self) -> int:
        """Keep what is seen until the run ends; return its exit status."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        while True:
            self._look()
            try:
                status = self.process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            reader.join()
            self._look()
            return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            found = STAGE.match(line)
            if found:
                self.done[found["stage"]] = int(found["done"].replace(",", ""))

    def _look(self) -> None:
        second = round(time.perf_counter() - self.began, 2)
        seen = [
            [it.number, it.role, it.resident_bytes, it.unique_bytes, it.cpu_seconds]
            for it in family(self.process.pid, unique=True)
            if it.role in ROLES
        ]
        look: Look = {"attempt": self.attempt, "second": second, "done": dict(self.done), "processes": seen}
        self.kept.write(json.dumps(look) + "\n")
        self.kept.flush()


def run(scenario: Path, blocks: int, cores: int, out: Path) -> Iterator[Look]:
    """Run the scenario, on from where it was, and give all that was seen in this attempt and in those before it."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / f"{scenario.stem}-{blocks}.seen.jsonl"
    earlier = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    command = [sys.executable, "-m", "relaycast", "run", str(scenario), "--blocks", str(blocks), "--out", str(out)]
    command += ["--engine", "spark", "--master", f"local[{cores}]"]
    attempt = earlier[-1]["attempt"] + 1 if earlier else 1
    with (
        kept.open("a") as stream,
        (out / "summary.txt").open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            status = Watch(process, stream, attempt).until_the_end()
        except KeyboardInterrupt:
            process.wait()
            sys.exit("bench_long_run: interrupted, the same command goes on from here")
    if status:
        sys.exit(f"bench_long_run: relaycast ended with {status}; the same command goes on from here")
    for line in kept.read_text().splitlines():
        yield json.loads(line)


def attempts(looks: Iterable[Look]) -> list[list[Look]]:
    """Return what was seen by attempt."""
    return [list(group) for _, group in groupby(looks, key=lambda look: look["attempt"])]


def phase_seconds(looks: list[Look], blocks: int) -> dict[str, float]:
    """Return how long each stage took in all attempts together, and what came after the last of them."""
    seconds = dict.fromkeys((*BEHIND, "report"), 0.0)
    for attempt in attempts(looks):
        for before, after in pairwise([{"second": 0.0, "done": {}}, *attempt]):
            done = {stage: before["done"].get(stage, 0) >= blocks for stage in BEHIND}
            for stage, behind in BEHIND.items():
                if not done[stage] and (behind is None or done[behind]):
                    seconds[stage] += after["second"] - before["second"]
            if all(done.values()):
                seconds["report"] += after["second"] - before["second"]
    return {stage: round(it, 1) for stage, it in seconds.items()}


def cpu_seconds(looks: list[Look]) -> dict[str, float]:
    """Return the processor time of all processes of each role, in all attempts together."""
    last: dict[tuple[int, int, str], float] = {}
    for look in looks:
        for number, role, _, _, seconds in look["processes"]:
            last[look["attempt"], number, role] = seconds
    totals: dict[str, float] = {}
    for (_, _, role), seconds in last.items():
        totals[role] = totals.get(role, 0.0) + seconds
    return {role: round(seconds, 1) for role, seconds in totals.items()}


def largest(looks: Iterable[Look], column: int) -> dict[str, int]:
    """Return the most, in MiB, that one process of each role held: ``column`` 2 resident, 3 of no other process."""
    found: dict[str, int] = {}
    for look in looks:
        for it in look["processes"]:
            found[it[1]] = max(found.get(it[1], 0), it[column] >> 20)
    return found


def moments(looks: list[Look], blocks: int) -> list[Look]:
    """Return looks at even steps of what is done, replayed and written together, up to the last."""
    far = [look["done"].get("replayed", 0) + look["done"].get("written", 0) for look in looks]
    wanted = [2 * blocks * step // ROWS for step in range(1, ROWS + 1)]
    return [looks[next((index for index, at in enumerate(far) if at >= it), len(far) - 1)] for it in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", type=Path, default=Path(__file__).with_name("long_run.toml"))
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--cores", type=int, default=2, help="workers; the driver takes a core of its own meanwhile")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--json", type=Path, help="a file to write the same to, for programs")
    arguments = parser.parse_args()
    looks = list(run(arguments.scenario, arguments.blocks, arguments.cores, arguments.out))
    report = report_of(looks, arguments.blocks)
    print_report(report)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def report_of(looks: list[Look], blocks: int) -> dict[str, Any]:
    """Return what was seen as figures."""
    shown = ({"done": it["done"], "mebibytes": largest([it], 2)} for it in moments(looks, blocks))
    return {
        "python": platform.python_version(),
        "blocks": blocks,
        "attempts": len(attempts(looks)),
        "seconds": phase_seconds(looks, blocks),
        "cpu_seconds": cpu_seconds(looks),
        "peak_resident_mebibytes": largest(looks, 2),
        "peak_unique_mebibytes": largest(looks, 3),
        "moments": list(shown),
    }


def print_report(report: dict[str, Any]) -> None:
    blocks, roles = report["blocks"], [role for role in ROLES if role in report["peak_resident_mebibytes"]]
    print(f"{'phase':14}{'seconds':>10}{'blocks/s':>10}")
    for stage, seconds in report["seconds"].items():
        rate = f"{blocks / seconds:,.1f}" if seconds and stage in BEHIND else ""
        print(f"{stage:14}{seconds:>10,.0f}{rate:>10}")
    print(f"\n{'process':14}{'CPU s':>10}{'ms/block':>10}{'peak MiB':>10}{'unique':>10}")
    for role in roles:
        cpu = report["cpu_seconds"][role]
        sizes = (report[f"peak_{kind}_mebibytes"][role] for kind in ("resident", "unique"))
        print(f"{role:14}{cpu:>10,.0f}{1000 * cpu / blocks:>10.2f}" + "".join(f"{size:>10,}" for size in sizes))
    print(f"\n{'replayed':>10}{'written':>10}" + "".join(f"{role + ' MiB':>14}" for role in roles))
    for it in report["moments"]:
        done = [it["done"].get(stage, 0) for stage in ("replayed", "written")]
        held = (it["mebibytes"].get(role, 0) for role in roles)
        print("".join([*(f"{count:>10,}" for count in done), *(f"{size:>14,}" for size in held)]))


if __name__ == "__main__":
    main()
