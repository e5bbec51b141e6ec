"""``relaycast bench``: how fast this machine is at what the project does."""

import json as json_text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, validators

from relaycast.exit_code import ExitCode
from relaycast.refusal import BadInput

if TYPE_CHECKING:
    from relaycast.engine_bench import Row

app = App(name="bench", help="How fast the trie engines are on this machine.")

HEADS = ("backend", "workload", "keys", "value", "measured", "hashlib", "floor", "peer")
COLUMNS = (11, 40, 9, 6, 13, 11, 8, 8)
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
JsonFile = Annotated[Path | None, Parameter(name="--json", help="a file to write the same to, for programs")]


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

    Beside each time stands what it is in hashlib calls for 64 bytes; over the floor, which is hashing alone at the
    speed of full lanes; and what the Rust peer takes over what we would take on its machine. Backends skip tries that
    are too large for them; one that is not installed is left out, with the reason.

    Example: relaycast bench engine --sizes 1000 10000 --backends array plain --json engine.json
    """
    if json is not None and (json.is_dir() or not json.parent.is_dir()):
        raise BadInput("--json", str(json), "a file in a folder that is there")
    from relaycast.engine_bench import MODULES, SIZES, WIDTHS, EngineBench  # noqa: PLC0415 - loads the compiler

    bench = EngineBench(backends or MODULES, seed=seed)
    for name, reason in bench.left_out.items():
        print(f"relaycast: bench: {name} is left out: {reason}", file=sys.stderr)
    print(f"first call {bench.first_call_seconds:.2f} s, warm {bench.warm_call_seconds * 1e3:.1f} ms")
    print(_line(HEADS))
    for sheet in bench.sheets_of(sizes or SIZES, values or WIDTHS):
        print("\n".join(map(_shown, sheet.rows())), flush=True)
    yardstick = bench.yardstick
    print(
        f"hashlib {yardstick.hashlib_ns:.0f} ns a call, "
        f"{yardstick.lanes} lanes {yardstick.lane_block_ns:.1f} ns a block: the best of the run"
    )
    if json is not None:
        json.write_text(json_text.dumps(bench.report(), indent=1) + "\n")
    return ExitCode.CHECK_FAILED if not bench.modules else ExitCode.FINE


def _shown(row: "Row") -> str:
    ratios = ["" if part is None else f"{part:.2f}" for part in (row.hashlib_calls, row.over_floor, row.peer_ratio)]
    return _line((row.backend, row.workload, str(row.keys), str(row.value_bytes), f"{row.measured:.2f}", *ratios))


def _line(cells: tuple[str, ...]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:TO_THE_LEFT], COLUMNS, strict=False)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[TO_THE_LEFT:], COLUMNS[TO_THE_LEFT:], strict=True)]
    return "".join([*words, *numbers]).rstrip()
