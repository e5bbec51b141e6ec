"""Options that change a scenario, and those of ``run`` and ``demo``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from relaycast.cli.options import (
    OUTPUT,
    RUNNING,
    SCENARIO,
    AllowOversize,
    AllowStarved,
    Json,
    TrieEngine,
    Verbose,
)
from relaycast.refusal import BadInput
from relaycast.scenario.scenario import MAX_BLOCKS, MAX_SEED, Scenario

Blocks = Annotated[
    int | None, Parameter(name="--blocks", group=SCENARIO, help="relay blocks, instead of the scenario's")
]
Seed = Annotated[int | None, Parameter(name="--seed", group=SCENARIO, help="seed, instead of the scenario's")]
GenesisFile = Annotated[
    str | None,
    Parameter(
        name="--genesis",
        group=SCENARIO,
        help="a raw chain spec, keys and values, or a witness, to start the relay chain from",
    ),
]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        group=SCENARIO,
        help="PATH=VALUE, one setting of the scenario, such as parachains.3000.subscribe.2000.keys=10; "
        "may be given several times",
    ),
]
PolicyOverrides = Annotated[
    list[str] | None,
    Parameter(
        name="--policy",
        group=SCENARIO,
        help="KIND=NAME, such as cache=none (compare --help lists all); may be given several times",
    ),
]
Out = Annotated[Path, Parameter(name="--out", group=OUTPUT, help="folder for the files, one folder in it for each run")]
PerKey = Annotated[
    bool | None,
    Parameter(
        name="--per-key",
        group=OUTPUT,
        negative="--no-per-key",
        help="write keys.parquet, what each key took of each block; written by default up to 200,000 rows",
    ),
]
Workers = Annotated[
    int | None,
    Parameter(
        name="--workers",
        group=RUNNING,
        help="processes of this machine that build readers' blocks side by side; chosen by itself when it pays",
    ),
]

OUT = Path("out")


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """How long a scenario runs, with which publications, and from which state."""

    blocks: Blocks = None
    seed: Seed = None
    genesis: GenesisFile = None


@dataclass(frozen=True, slots=True)
class ScenarioFlags(TraceFlags):
    """Everything that the command line may change in a scenario."""

    settings: Settings = None
    policy: PolicyOverrides = None
    state_version: Annotated[
        Literal[0, 1] | None,
        Parameter(name="--state-version", group=SCENARIO, help="1 migrates a genesis of version 0 before block 1"),
    ] = None


@dataclass(frozen=True, slots=True)
class RunFlags(ScenarioFlags):
    """All options of ``demo``, and those of ``run`` that either engine takes."""

    out: Out = OUT
    json: Json = False
    verbose: Verbose = False
    per_key: PerKey = None
    trie_engine: TrieEngine = "auto"
    workers: Workers = None
    allow_oversize: AllowOversize = False
    allow_starved: AllowStarved = False
    open: Annotated[bool, Parameter(name="--open", group=OUTPUT, help="show the report in a browser")] = False


NO_FLAGS = RunFlags()


def adjusted(scenario: Scenario, flags: TraceFlags) -> Scenario:
    """Return ``scenario`` with the blocks, seed and genesis of the command line; raises ``BadInput``."""
    if flags.blocks is not None:
        if not 1 <= flags.blocks <= MAX_BLOCKS:
            raise BadInput("--blocks", str(flags.blocks), f"a number from 1 to {MAX_BLOCKS:,}")
        scenario = replace(scenario, blocks=flags.blocks)
    if flags.seed is not None:
        if not 0 <= flags.seed <= MAX_SEED:
            raise BadInput("--seed", str(flags.seed), "a number from 0 to 2^63 - 1")
        scenario = replace(scenario, seed=flags.seed)
    if flags.genesis is not None:
        scenario = replace(scenario, relaychain=replace(scenario.relaychain, genesis=flags.genesis))
    return scenario


def overridden(scenario: Scenario, flags: ScenarioFlags) -> Scenario:
    """Return ``scenario`` with all that the command line changes; raises ``BadInput``."""
    from relaycast.scenario.limit_checks import check_cache_limits  # noqa: PLC0415
    from relaycast.scenario.policy_choice import with_overrides  # noqa: PLC0415
    from relaycast.scenario.settings import set_by  # noqa: PLC0415

    scenario = set_by(adjusted(scenario, flags), flags.settings or ())
    scenario = replace(scenario, policies=with_overrides(scenario.policies, flags.policy or ()))
    check_cache_limits(scenario, "--policy")
    if flags.state_version is None:
        return scenario
    return replace(scenario, relaychain=replace(scenario.relaychain, state_version=flags.state_version))


def show(page: Path) -> None:
    """Show a page in the browser of this machine; say where it is when there is none."""
    import webbrowser  # noqa: PLC0415 - few need it

    if not webbrowser.open(page.resolve().as_uri()):
        print(f"relaycast: no browser here, the page is {page}", file=sys.stderr)
