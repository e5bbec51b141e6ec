"""Options of ``run`` and ``demo`` that change the scenario, or what becomes of its outcome."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from msgspec.structs import replace

from relaycast.cli.options import AllowOversize, AllowStarved

if TYPE_CHECKING:
    from relaycast.scenario.scenario import Scenario

Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        help="PATH=VALUE, one setting of the scenario, such as parachains.3000.subscribe.2000.keys=10; "
        "may be given several times",
    ),
]
PolicyOverrides = Annotated[
    list[str] | None,
    Parameter(
        name="--policy", help="KIND=NAME, such as cache=none (compare --help lists all); may be given several times"
    ),
]


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What the command line says beside the scenario."""

    settings: Settings = None
    policy: PolicyOverrides = None
    state_version: Annotated[
        Literal[0, 1] | None,
        Parameter(name="--state-version", help="1 migrates a genesis of version 0 before block 1"),
    ] = None
    allow_oversize: AllowOversize = False
    allow_starved: AllowStarved = False
    open: Annotated[bool, Parameter(name="--open", help="show the report in a browser")] = False


NO_FLAGS = RunFlags()


def overridden(scenario: "Scenario", flags: RunFlags) -> "Scenario":
    """Return ``scenario`` with the settings and policies of the command line; raises ``BadInput``."""
    from relaycast.scenario.limit_checks import check_cache_limits  # noqa: PLC0415
    from relaycast.scenario.policy_choice import with_overrides  # noqa: PLC0415
    from relaycast.scenario.settings import set_by  # noqa: PLC0415

    scenario = set_by(scenario, flags.settings or ())
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
