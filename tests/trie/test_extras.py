"""Which extra brings a module, as ``pyproject.toml`` has them."""

import tomllib

import pytest
from packaging.requirements import Requirement

from relaycast_trie.extras import extra_of, module_of
from rooms import ROOT

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_module_is_found_in_an_extra_that_has_it(extra: str) -> None:
    modules = [module_of(Requirement(line).name) for line in EXTRAS[extra]]
    for module in (it for it in modules if not it.startswith("types_")):
        found = extra_of(module)
        assert found is not None
        assert module in {module_of(Requirement(it).name) for it in EXTRAS[found]}
        assert len(EXTRAS[found]) <= len(EXTRAS[extra]), "the smallest that brings it"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("wasmtime", "wasm"),
        ("psutil", "spark"),
        ("pandas.core.frame", "spark"),
        ("py4j.protocol", "spark"),
        ("nats.aio", "nats"),
        ("numpy", None),
        ("relaycast_trie.nothing", None),
        ("", None),
    ],
)
def test_parts_of_modules_are_found_and_others_are_of_no_extra(module: str, extra: str | None) -> None:
    assert extra_of(module) == extra
