"""``relaycast bench``: the headline experiments, and how fast this machine is at what the project does."""

import json as json_text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, validators

from relaycast.cli.bench_spark import spark
from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.out_file import check_file, parents_of, write_text
from relaycast.refusal import BadInput, nearest, shown
from relaycast.simulation.run_folder import check_writable
from relaycast.terminal import say, shows_progress
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_spark.exceptions import SparkUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaycast.bench.engine import MeasuredWorkload

app = App(name="bench", help="Run the headline experiments E1 to E22, or time the engines here.")

HEADS = ("backend", "workload", "keys", "value", "measured", "hashlib", "over floor", "peer")
FLOOR_HEADS = ("backend", "workload", "keys", "value", "measured", "blocks", "floor", "over floor")
COLUMNS = (11, 40, 9, 6, 13, 11, 11, 11)
TABLES = (("User paths", "user"), ("Kernel paths", "kernel"))
PASS_FIELDS = ("keys", "changed", "engine", "proof_bytes_per_block", "prune_ms", "verify_ms", "seal_ms", "over_hashlib")
PASS_COLUMNS = (
    ("keys", 8),
    ("changed", 9),
    ("engine", 8),
    ("proof bytes", 13),
    ("PRUNE", 9),
    ("VERIFY", 9),
    ("seal", 9),
    ("x hashlib", 11),
)
TO_THE_LEFT = 2
"""How many columns are words."""

Sizes = Annotated[
    list[int],
    Parameter(
        name="--sizes",
        help="keys of each trie",
        consume_multiple=True,
        validator=validators.Number(gte=10, lte=100_000_000),
    ),
]
Values = Annotated[
    list[int],
    Parameter(
        name="--values", help="bytes of a value", consume_multiple=True, validator=validators.Number(gte=1, lte=65_536)
    ),
]
Backends = Annotated[
    list[Literal["array", "plain", "trie", "chopsticks"]],
    Parameter(
        name="--backends",
        help="our engines; Ethereum's trie from PyPI; smoldot's in WebAssembly, from npm",
        consume_multiple=True,
    ),
]
Seed = Annotated[
    int, Parameter(name="--seed", help="keys and values follow from it", validator=validators.Number(gte=0))
]
PassBlocks = Annotated[
    int,
    Parameter(
        name="--blocks", help="blocks that are timed at each size", validator=validators.Number(gte=1, lte=10_000)
    ),
]
JsonFile = Annotated[Path | None, Parameter(name="--json", help="a file to write the same to, for programs")]
Names = Annotated[list[str] | None, Parameter(help="experiments, such as E1 E4, or all; none lists what there is")]
ExperimentSeed = Annotated[
    int, Parameter(name="--seed", help="everything follows from it", validator=validators.Number(gte=0, lt=2**63))
]
Out = Annotated[Path, Parameter(name="--out", help="folder for tables, charts and sentences")]
Quick = Annotated[bool, Parameter(name="--quick", help="smaller, a few seconds each")]

ALL = "all"

app.command(spark)


@app.default
def experiments(
    names: Names = None,
    /,
    *,
    out: Out = Path("out/experiments"),
    seed: ExperimentSeed = 1,
    quick: Quick = False,
    json: Json = False,
) -> ExitCode:
    """Run experiments: each writes a Parquet table, a chart as SVG and HTML, and one sentence with its conditions.

    The same seed gives the same bytes; docs/experiments.md has the answers. Charts need the extra 'experiments'.

    Example: relaycast bench E1 E4 --quick
    """
    from relaycast.experiments import REGISTRY, questions  # noqa: PLC0415

    if not names:
        _list_experiments(questions(), json)
        return ExitCode.FINE
    wanted = _wanted(names, list(REGISTRY))
    check_writable(out)
    with parents_of(out / "any"):
        _run_experiments(wanted, out, seed=seed, quick=quick, json=json)
    return ExitCode.FINE


@app.command
def engine(
    *,
    sizes: Sizes | None = None,
    values: Values | None = None,
    backends: Backends | None = None,
    seed: Seed = 1,
    json: JsonFile = None,
) -> ExitCode:
    """Time roots, gets, proofs, updates and removals over random tries, by default of 1k to 1M keys.

    There are three tables for each trie. The first is what users call, from dicts and bytes to roots and values, the
    second what kernels do with what is in arrays already. The third is the hash floor: hashing the same blocks alone at
    the speed of full lanes. Beside each time stands what it is in hashlib calls for 64 bytes, and what the Rust peer
    took on another CPU, which is named below the tables. Backends skip tries that are too large for them; one that is
    not installed is left out, with the reason.

    Example: relaycast bench engine --sizes 1000 10000 --backends array plain --json engine.json
    """
    if json is not None:
        check_file(json, "--json")
    from relaycast.bench import peer  # noqa: PLC0415
    from relaycast.bench.engine import MODULES, SIZES, WIDTHS, EngineBench  # noqa: PLC0415 - loads the compiler
    from relaycast.bench.yardstick import cpu_name  # noqa: PLC0415

    bench = EngineBench(backends or MODULES, seed=seed)
    for name, reason in bench.left_out.items():
        print(f"relaycast: bench: {name} is left out: {reason}", file=sys.stderr)
    print(f"first call {bench.first_call_seconds:.2f} s, warm {bench.warm_call_seconds * 1e3:.1f} ms")
    for sheet in bench.sheets_of(sizes or SIZES, values or WIDTHS):
        _print_tables(sheet.rows())
    yardstick = bench.yardstick
    say(
        f"hashlib {yardstick.hashlib_ns:.0f} ns a call, "
        f"{yardstick.lanes} lanes {yardstick.lane_block_ns:.1f} ns a block: the best of the run"
    )
    say(f"measured on {cpu_name()}; peer: {peer.NAME} on {peer.CPU}, as recorded there")
    if json is not None:
        write_text(json, json_text.dumps(bench.report(), indent=1) + "\n", "--json")
    return ExitCode.CHECK_FAILED if not bench.modules else ExitCode.FINE


@app.command(name="pass")
def proof_pass(*, blocks: PassBlocks = 20, seed: Seed = 1, json: JsonFile = None) -> ExitCode:
    """Time PRUNE, VERIFY and the own seal of one subscriber, in plain Python and in arrays, at three sizes.

    Times are milliseconds of CPU time a block. The last column compares PRUNE and VERIFY together with hashing the
    nodes of the proof one by one, in the same run.

    Example: relaycast bench pass --blocks 50 --json pass.json
    """
    if json is not None:
        check_file(json, "--json")
    from relaycast.bench.proof_pass import ENGINES, SIZES, measured  # noqa: PLC0415
    from relaycast.bench.yardstick import cpu_name  # noqa: PLC0415 - loads the compiler
    from relaycast_trie import warm_up  # noqa: PLC0415

    warm_up()
    print("".join(head.rjust(width) for head, width in PASS_COLUMNS))
    rows = []
    for keys, publishers, changed in SIZES:
        for engine in ENGINES:
            row = measured(keys, publishers, changed, engine, blocks=blocks, seed=seed)
            rows.append(row)
            cells = (row[name] for name in PASS_FIELDS)
            shown_cells = (f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells)
            print(
                "".join(it.rjust(width) for it, (_, width) in zip(shown_cells, PASS_COLUMNS, strict=True)), flush=True
            )
    say(f"milliseconds of CPU time a block over {blocks} blocks, measured on {cpu_name()}")
    if json is not None:
        write_text(json, json_text.dumps({"schema": SCHEMA_VERSION, "passes": rows}, indent=1) + "\n", "--json")
    return ExitCode.FINE


def _wanted(names: "Sequence[str]", known: list[str]) -> list[str]:
    """Return the experiments that are named, each once, in their order; raises ``BadInput``."""
    given = [name.upper() for name in names]
    for name, wanted in zip(names, given, strict=True):
        if wanted not in known and name.lower() != ALL:
            raise BadInput("bench", shown(name), "the name of an experiment, or all", nearest(wanted, known))
    return known if ALL.upper() in given else [name for name in known if name in given]


def _run_experiments(names: list[str], out: Path, *, seed: int, quick: bool, json: bool) -> None:
    from relaycast.experiments import load  # noqa: PLC0415
    from relaycast.experiments.chart_files import MISSING, can_draw  # noqa: PLC0415
    from relaycast.experiments.experiment import Scale  # noqa: PLC0415
    from relaycast.experiments.result_files import as_json, write  # noqa: PLC0415

    if not can_draw():
        print(f"relaycast: bench: no charts: {MISSING}", file=sys.stderr)
    told = []
    for name in names:
        if shows_progress():
            print(f"{name} ...", end="\r", file=sys.stderr, flush=True)
        try:
            result = load(name).run(Scale(seed, quick=quick))
        except SparkUnavailable as error:
            if len(names) == 1:
                raise
            print(f"relaycast: bench: {name} is left out: {error}", file=sys.stderr)
            continue
        files = write(result, out)
        told.append(as_json(result, files))
        if not json:
            say(f"{name}  {result.answer}\n    {', '.join(files)} in {out}\n", hanging=4)
            print(flush=True)
    if json:
        print(json_text.dumps({"schema": SCHEMA_VERSION, "experiments": told}))


def _list_experiments(questions: dict[str, str], json: bool) -> None:
    if json:
        print(json_text.dumps({"schema": SCHEMA_VERSION, "experiments": questions}))
        return
    for name, question in questions.items():
        say(f"{name:4} {question}", hanging=5)
    print()
    say("relaycast bench E1 E4, or all, runs them; --help has the options, and what else can be measured")


def _print_tables(rows: "list[MeasuredWorkload]") -> None:
    """Print what users call, what kernels do, and the hash floor, as far as there are rows of each."""
    hashing = [row for row in rows if row.floor is not None]
    tables = [(title, HEADS, [row for row in rows if row.path == path]) for title, path in TABLES]
    for title, heads, some in (*tables, ("Hash floor", FLOOR_HEADS, hashing)):
        if some:
            print(f"\n{title}\n{_line(heads)}")
            print("\n".join(_shown(row, floor=heads is FLOOR_HEADS) for row in some), flush=True)


def _shown(row: "MeasuredWorkload", *, floor: bool) -> str:
    parts = (row.blocks, row.floor, row.over_floor) if floor else (row.hashlib_calls, row.over_floor, row.peer)
    cells = ["" if part is None else f"{part:.2f}" for part in parts]
    return _line((row.backend, row.workload, str(row.keys), str(row.value_bytes), f"{row.measured:.2f}", *cells))


def _line(cells: tuple[str, ...]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:TO_THE_LEFT], COLUMNS, strict=False)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[TO_THE_LEFT:], COLUMNS[TO_THE_LEFT:], strict=True)]
    return "".join([*words, *numbers]).rstrip()
