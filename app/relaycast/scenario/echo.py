"""A scenario without where its files lie on this machine: what its run tells of it, and what its digest covers."""

from pathlib import Path
from typing import TypeVar

from msgspec import UnsetType
from msgspec.structs import replace

from relaycast.scenario.message_load import without_folders
from relaycast.scenario.scenario import ParachainTable, Scenario

Absent = TypeVar("Absent", None, UnsetType)


def echoed(scenario: Scenario) -> Scenario:
    """Return the scenario with the names of its files alone."""
    relay = scenario.relaychain
    relay = replace(relay, genesis=_name_of(relay.genesis), wasm=_name_of(relay.wasm))
    chains = [_echoed_chain(chain) for chain in scenario.parachains]
    return replace(scenario, relaychain=relay, publications=_name_of(scenario.publications), parachains=chains)


def _echoed_chain(chain: ParachainTable) -> ParachainTable:
    files = {name: _name_of(getattr(chain, name)) for name in ("wasm", "genesis", "extrinsics")}
    return replace(chain, messages=without_folders(chain.messages), **files)


def _name_of(file: str | Absent) -> str | Absent:
    return Path(file).name if isinstance(file, str) else file
