"""The bounds of dependencies in ``pyproject.toml``: each is at least what the code needs."""

import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from rooms import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

NEEDED = {
    "aiohttp": ("3.14.1", "earlier releases wait for a frame of WebSocket that announces 2**63 - 1 bytes"),
    "cbor2": ("6.2", "earlier decoders have no strict_hashable_types, which the WAMP serializer passes"),
    "cloudevents": ("2.0", "earlier releases have no cloudevents.core.bindings"),
    "cyclopts": ("4.8", "earlier releases refuse verbs that are named by their module, or have other errors"),
    "hypothesis": ("6.139", "earlier releases have no settings.get_current_profile_name"),
    "jinja2": ("3.1.6", "earlier sandboxes can be escaped"),
    "msgspec": ("0.21", "earlier DecodeErrors are no ValueError: a truncated frame would not be caught"),
    "openapi-spec-validator": ("0.7.1", "earlier releases have no validate at the top"),
    "pynacl": ("1.6.2", "earlier releases bring a libsodium that accepts some invalid points"),
    "pytest": ("8.4", "earlier releases do not export TerminalReporter"),
}
"""The lowest release of a package that works, and why."""


def requirements() -> Iterator[tuple[str, Requirement]]:
    for extra, lines in {"": PROJECT["dependencies"], **EXTRAS}.items():
        for line in lines:
            yield extra, Requirement(line)


def lowest(requirement: Requirement) -> Version | None:
    return max((Version(it.version) for it in requirement.specifier if it.operator in (">=", "==")), default=None)


@pytest.mark.parametrize("package", NEEDED)
def test_a_bound_is_at_least_what_the_code_needs(package: str) -> None:
    least, reason = NEEDED[package]
    bounds = [lowest(it) for _, it in requirements() if it.name == package]
    assert bounds
    assert all(bound is not None and bound >= Version(least) for bound in bounds), reason


def test_a_package_has_the_same_bounds_in_every_extra() -> None:
    bounds: dict[str, set[str]] = {}
    for _, it in requirements():
        bounds.setdefault(it.name, set()).add(str(it.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_every_package_but_the_stubs_has_a_lower_bound() -> None:
    without = {it.name for _, it in requirements() if lowest(it) is None}
    assert all(name.startswith("types-") for name in without)


def test_what_users_rely_on_stays_a_dependency() -> None:
    always = {it.name for extra, it in requirements() if not extra}
    assert {"scalecodec", "pycryptodome", "blake3", "numba"} <= always
    assert {"pytest", "hypothesis", "pyspark"} <= {Requirement(it).name for it in EXTRAS["dev"]}
    assert "pyspark" in {Requirement(it).name for it in EXTRAS["spark"]}
