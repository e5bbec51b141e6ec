"""What checkpoints name is what they may name: no less, so that every run can be taken up again, and no more."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from relaycast.scenario.files import load_preset
from relaycast.scenario.message_load import Bursts, Lognormal, MessageLoad, Poisson, Trace, Uniform
from relaycast.scenario.policy_choice import KINDS, PolicyTable
from relaycast.scenario.scenario import Payment, Scenario
from relaycast_spark import checkpoint, checkpoint_reading
from relaycast_spark.checkpoint_names import (
    CHAIN_ROOMS,
    FUNCTIONS,
    METHODS,
    OF_THE_FRONT_DOOR,
    PLAIN,
    REBUILD,
    WITH_FILES,
    Name,
    is_of_the_chain,
)
from relaycast_spark.checkpoint_reading import Unpickler
from spark.scenarios import MARKET, SCARCE, recorded, segments_of

ROOT = Path(__file__).parents[2]
REACHES_OUT = {"ctypes", "importlib", "io", "mmap", "multiprocessing", "numba", "os", "pathlib", "pickle", "shutil"} | {
    "signal", "socket", "subprocess", "tempfile", "threading",
}  # fmt: skip


def of_all_kinds(folder: Path) -> Iterator[Scenario]:
    """Yield small scenarios that hold together what any scenario may."""
    yield replace(load_preset("griefed-publisher"), blocks=12)
    yield recorded(folder / "feed.csv")
    for kind, choices in KINDS.items():
        for name in choices:
            yield replace(SCARCE, blocks=7, policies=replace(PolicyTable(), **{kind: name}))
    (folder / "load.csv").write_text("block,bytes\n1,100\n3,4000\n")
    loads = iter(
        [
            MessageLoad(horizontal=Uniform(high_bytes=900), downward=Lognormal(median_bytes=400)),
            MessageLoad(horizontal=Poisson(mean_messages=2), downward=Bursts(bytes=9_000, every=3)),
            MessageLoad(horizontal=Trace(file=str(folder / "load.csv")), downward=50),
        ]
    )
    chains = [replace(it, messages=next(loads)) if it.subscribe else it for it in MARKET.parachains]
    chains = [
        replace(it, publish=replace(it.publish, deregisters_at=6, payment=Payment(balance=10**10)))
        if it.publish and it.id == 2000
        else it
        for it in chains
    ]
    yield replace(MARKET, parachains=chains, blocks=12)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Name]]:
    """What checkpoints of all kinds of scenarios name: classes, functions and methods."""
    found: dict[str, set[Name]] = {"class": set(), "function": set(), "method": set()}

    class Noting(Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            thing = super().find_class(module, name)
            if (module, name) == ("builtins", "getattr"):
                self._makers[id(method_of)] = method_of
                return method_of
            found["class" if isinstance(thing, type) else "function"].add((module, name))
            return thing

    def method_of(owner: Any, name: str) -> Any:
        kind = owner if isinstance(owner, type) else type(owner)
        found["method"].add((kind.__module__, f"{kind.__qualname__}.{name}"))
        return checkpoint_reading._method_of(owner, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "Unpickler", Noting)
        for scenario in of_all_kinds(tmp_path_factory.mktemp("scenarios")):
            for segment in segments_of(scenario, length=5):
                checkpoint.thaw(segment.checkpoint)
        for segment in segments_of(replace(MARKET, blocks=7), length=5, trie_engine="array"):
            checkpoint.thaw(segment.checkpoint)
    return found


def test_of_the_front_door_a_checkpoint_names_these_classes_and_no_others(named: dict[str, set[Name]]) -> None:
    assert {it for it in named["class"] - PLAIN if not is_of_the_chain(it[0])} == OF_THE_FRONT_DOOR


def test_of_other_packages_a_checkpoint_names_these_containers(named: dict[str, set[Name]]) -> None:
    assert {it for it in named["class"] if not it[0].startswith("relaycast")} == PLAIN
    assert named["method"]
    assert REBUILD in named["function"]


def test_functions_and_methods_are_those_that_pallets_hold(named: dict[str, set[Name]]) -> None:
    assert named["function"] - {REBUILD} == FUNCTIONS
    assert named["method"] == METHODS


def test_no_class_of_the_chain_comes_from_a_module_that_reaches_beyond_values() -> None:
    for room in CHAIN_ROOMS:
        for file in (ROOT / room.removeprefix("relaycast_") / room).rglob("*.py"):
            module = ".".join(file.relative_to(ROOT / room.removeprefix("relaycast_")).with_suffix("").parts)
            tree = ast.parse(file.read_text())
            if is_of_the_chain(module) and any(isinstance(node, ast.ClassDef) for node in ast.walk(tree)):
                assert not REACHES_OUT & set(imported(tree)), module
    assert not any(
        map(is_of_the_chain, (*WITH_FILES, "relaycast.simulation.simulation", "relaycast_spark.work_folder", "os"))
    )
    assert is_of_the_chain("relaycast_pallets.frame.system")


def imported(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (it.name.split(".")[0] for it in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
