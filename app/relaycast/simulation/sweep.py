"""Sweeps: a grid of scenarios, seeds, policies and values of single settings, and what each cell of it comes to.

Law: a cell is a run like any other, by the same code and with the same run id. One that fails says so in its row, and
the others go on.
"""

from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from relaycast.inputs import parse_toml, place_of, read_bytes
from relaycast.refusal import BadInput, nearest, one_line, shown
from relaycast.report.full_block import fullest
from relaycast.scenario.checks import check_references
from relaycast.scenario.files import load_preset, load_scenario, presets
from relaycast.scenario.policy_choice import described, with_overrides
from relaycast.scenario.scenario import MAX_BLOCKS, Scenario
from relaycast.scenario.settings import with_settings
from relaycast.scenario.wasm_checks import refuse_runtimes
from relaycast.simulation.simulation import Simulation
from relaycast_trie.engine import Engine, warm_up_for

MAX_CELLS = 100_000

Value = int | float | str | bool
Names = Annotated[list[str], Meta(min_length=1)]
Seeds = Annotated[list[Annotated[int, Meta(ge=0, le=2**63 - 1)]], Meta(min_length=1)]


class Sweep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sweep file says: every combination is run."""

    scenarios: Names
    """Presets, and scenario files relative to the sweep's."""

    seeds: Seeds | None = None
    blocks: Annotated[int, Meta(ge=1, le=MAX_BLOCKS)] | None = None
    policies: Annotated[list[list[str]], Meta(min_length=1)] | None = None
    """Lists of KIND=NAME over the scenario's own; an empty one leaves them."""

    vary: dict[str, Annotated[list[Value], Meta(min_length=1)]] = {}
    """Values by the path of a setting: ``relaychain.pov_percent``, ``parachains.2000.publish.keys``."""


class Cell(Struct, frozen=True, kw_only=True):
    """One run of a sweep."""

    number: int
    scenario: Scenario
    policies: str
    varied: dict[str, Value]


KINDS: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}

FIGURES = pa.schema(
    [
        ("run_id", pa.string()),
        ("para_id", pa.int64()),
        ("name", pa.string()),
        ("keys", pa.int64()),
        ("subscriber_blocks", pa.int64()),
        ("deliveries", pa.int64()),
        ("callbacks", pa.int64()),
        ("told_again", pa.int64()),
        *((f"proof_bytes_{which}", pa.int64()) for which in ("p50", "p99", "max", "total")),
        *((f"static_bytes_{which}", pa.int64()) for which in ("p50", "p99", "max", "total")),
        *((f"own_bytes_{which}", pa.int64()) for which in ("p50", "p99", "max", "total")),
        *((f"pov_bytes_{which}", pa.int64()) for which in ("p50", "p99", "max", "total")),
        *((f"compressed_bytes_{which}", pa.int64()) for which in ("p50", "p99", "max", "total")),
        ("oversize_blocks", pa.int64()),
        ("fullest_block", pa.string()),
        *((f"latency_blocks_{which}", pa.int64()) for which in ("p50", "p99", "max")),
        ("incomplete_blocks", pa.int64()),
        ("starved", pa.bool_()),
        ("invariants_ok", pa.bool_()),
        ("error", pa.string()),
    ]
)
"""What is said of one subscriber in one cell; ``error`` says why a cell could not be run.

``own_bytes`` are nodes of the parachain's own state beside the relay proof. ``pov_bytes`` are all that a block carries,
``compressed_bytes`` the same as the relay chain gets it. ``oversize_blocks`` counts the blocks that it would refuse; if
there are any, ``fullest_block`` says what the fullest one carries. ``told_again`` counts the callbacks that brought a
known value; they count in no latency. ``starved`` readers were not given what they subscribe to.
"""


def load_sweep(file: str) -> list[Cell]:
    """Return the cells of the sweep in ``file``; raises ``BadInput``."""
    place = place_of(file)
    try:
        sweep = msgspec.convert(parse_toml(read_bytes(file), place, "a sweep in TOML"), Sweep)
    except msgspec.ValidationError as error:
        raise BadInput(place, one_line(str(error)), "scenarios, and seeds, blocks, policies or vary") from None
    return _cells(sweep, place, Path(file).parent)


def table_schema(cells: list[Cell]) -> pa.Schema:
    """Return the columns of the sweep's table: what tells cells apart, then the figures."""
    varied = {path: _kind([cell.varied[path] for cell in cells]) for path in cells[0].varied}
    cell = [("cell", pa.int64()), ("scenario", pa.string()), ("seed", pa.int64()), ("blocks", pa.int64())]
    return pa.schema([*cell, ("policies", pa.string()), *varied.items(), *FIGURES])


def run_cell(encoded: bytes, *, trie_engine: Engine = "auto") -> list[dict[str, Any]]:
    """Run one cell (a ``Cell`` as JSON) and return its rows: a worker's work."""
    cell = msgspec.json.decode(encoded, type=Cell)
    scenario = cell.scenario
    about: dict[str, Any] = {
        "cell": cell.number,
        "scenario": scenario.name,
        "seed": scenario.seed,
        "blocks": scenario.blocks,
        "policies": cell.policies,
        **cell.varied,
    }
    try:
        warm_up_for(trie_engine)
        outcome = Simulation.prepare(scenario, trie_engine=trie_engine).run()
    except Exception as error:
        return [{**about, "error": f"{type(error).__name__}: {error}"}]
    return [
        {
            **about,
            "run_id": outcome.run_id,
            "para_id": it.para_id,
            "name": it.name,
            "keys": it.keys,
            "subscriber_blocks": it.blocks,
            "deliveries": it.deliveries,
            "callbacks": it.callbacks,
            **_flat("proof_bytes", it.proof_bytes),
            **_flat("static_bytes", it.static_bytes),
            **_flat("own_bytes", it.own_bytes),
            **_flat("pov_bytes", it.pov_bytes),
            **_flat("compressed_bytes", it.compressed_bytes),
            "oversize_blocks": it.oversize_blocks,
            "fullest_block": fullest(it.fullest_block) if it.oversize_blocks and it.fullest_block else None,
            "told_again": it.told_again,
            **_flat("latency_blocks", it.latency_blocks),
            "incomplete_blocks": it.incomplete_blocks,
            "starved": it.is_starved,
            "invariants_ok": outcome.invariants.ok,
        }
        for it in outcome.subscribers
    ]


def _flat(name: str, figures: Struct) -> dict[str, int | None]:
    return {f"{name}_{which}": value for which, value in msgspec.structs.asdict(figures).items()}


def _cells(sweep: Sweep, place: str, folder: Path) -> list[Cell]:
    scenarios = [_scenario(name, folder, place) for name in sweep.scenarios]
    for scenario in scenarios:
        refuse_runtimes(scenario, f"{place} at scenarios", "modelled parachains, whose readers have rows")
    seeds: list[int | None] = [*sweep.seeds] if sweep.seeds else [None]
    grid = list(product(scenarios, seeds, sweep.policies or [[]], product(*sweep.vary.values())))
    if len(grid) > MAX_CELLS:
        raise BadInput(place, f"{len(grid):,} cells", f"at most {MAX_CELLS:,}")
    cells = []
    for number, (scenario, seed, policies, values) in enumerate(grid):
        varied = dict(zip(sweep.vary, values, strict=True))
        chosen = msgspec.structs.replace(
            with_settings(scenario, varied, f"{place} at vary"),
            seed=scenario.seed if seed is None else seed,
            blocks=sweep.blocks or scenario.blocks,
        )
        table = with_overrides(chosen.policies, policies, place=f"{place} at policies")
        chosen = msgspec.structs.replace(chosen, policies=table)
        check_references(chosen, f"{place} in cell {number}")
        cells.append(Cell(number=number, scenario=chosen, policies=described(table), varied=varied))
    return cells


def _scenario(name: str, folder: Path, place: str) -> Scenario:
    if name in presets():
        return load_preset(name)
    if not Path(name).suffix:
        raise BadInput(f"{place} at scenarios", shown(name), "a preset or a scenario file", nearest(name, presets()))
    return load_scenario(str(folder / name))


def _kind(values: list[Value]) -> pa.DataType:
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return pa.float64()
    return KINDS[kinds.pop()] if len(kinds) == 1 else pa.string()
