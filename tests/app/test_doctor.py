"""``relaycast doctor``: what it finds, what it calls broken, and how it says to fix that."""

import importlib
import importlib.metadata
import os
import re
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from command_line import Command
from relaycast.cli import installed as doctor
from relaycast.cli.installed import Health, examine, fits
from relaycast_spark import session
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_trie.array import warm_up
from relaycast_trie.extras import install_command


def by_name() -> dict[str, doctor.Finding]:
    return {it.name: it for it in examine()}


def test_what_runs_the_tests_is_not_broken(relaycast: Command) -> None:
    ended = relaycast("doctor", "--json")
    assert ended.code == 0
    assert ended.json["ok"] is True
    assert {it["state"] for it in ended.json["findings"]} <= {"ok", "slow", "missing"}
    names = [it["name"] for it in ended.json["findings"]]
    assert names[:2] == ["python", "packages"]
    assert {"extra spark", "policies", "cpu", "compiled code", "java", "node", "folder", "machine"} <= set(names)


def test_what_is_not_there_is_said_with_what_it_is_for_and_how_to_fix_it(
    relaycast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java() -> int:
        raise SparkUnavailable("there is no Java on the PATH", session.INSTALL_JAVA)

    monkeypatch.setattr(session, "require_java", no_java)
    java = by_name()["java"]
    assert (java.state, java.found, java.fix) == (Health.MISSING, "there is no Java on the PATH", session.INSTALL_JAVA)
    ended = relaycast("doctor")
    assert ended.code == 0
    assert "fix: install Java 17" in ended.out
    assert "for: --engine spark of run" in ended.out
    assert "java" in ended.out.splitlines()[-1]


@pytest.mark.parametrize("slip", ["absent", "old", "unloadable"])
def test_a_package_that_every_verb_needs_makes_the_exit_code_one(
    slip: str, relaycast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_version, real_import = importlib.metadata.version, importlib.import_module

    def version(package: str) -> str:
        if package == "blake3" and slip == "absent":
            raise importlib.metadata.PackageNotFoundError(package)
        return "0.1" if package == "blake3" and slip == "old" else real_version(package)

    def load(name: str) -> Any:
        if name == "blake3" and slip == "unloadable":
            raise ImportError("libblake3.so: wrong ELF class")
        return real_import(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib, "import_module", load)
    found = by_name()["packages"]
    expected = {
        "absent": "blake3 is not installed",
        "old": "blake3 0.1 does not fit blake3>=1.0",
        "unloadable": "does not load (libblake3.so: wrong ELF class)",
    }
    assert found.state is Health.BROKEN
    assert expected[slip] in found.found
    ended = relaycast("doctor")
    assert ended.code == 1
    assert ended.out.splitlines()[-1] == "broken: packages"
    assert relaycast("doctor", "-q").out == ""


def test_an_extra_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(package: str) -> str:
        if package == "pyspark":
            raise importlib.metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    spark = by_name()["extra spark"]
    assert (spark.state, spark.found) == (Health.MISSING, "pyspark is not installed")
    assert spark.fix == "pip install -e '.[spark]' in the clone of relaycast", "a copy would hide what is pulled later"


def test_every_extra_is_looked_at_and_said_what_it_is_for() -> None:
    extras = importlib.metadata.metadata("relaycast").get_all("Provides-Extra")
    assert set(doctor.EXTRAS) == set(extras or ())
    assert {f"extra {it}" for it in doctor.EXTRAS} <= set(by_name())


@pytest.mark.parametrize("fix", [doctor.INSTALL_AGAIN, install_command("wasm")])
def test_no_advice_installs_a_copy_of_the_clone(fix: str) -> None:
    assert re.search(r"pip install (--force-reinstall )?-e \S", fix)


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (warm_up.KeptCode(91, 91, Path("c"), True), Health.OK, "91 of 91 kernels compiled in c"),
        (warm_up.KeptCode(91, 4, Path("c"), True), Health.SLOW, "the first large trie waits for the others"),
        (warm_up.KeptCode(91, 0, Path("c"), False), Health.SLOW, "cannot be written to: every process compiles anew"),
        (warm_up.KeptCode(91, 0, None, False), Health.SLOW, "compiled in nowhere"),
    ],
)
def test_compiled_code_that_is_not_kept_is_slow(
    code: warm_up.KeptCode, state: Health, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "kept_code", lambda: code)
    found = by_name()["compiled code"]
    assert found.state is state
    assert said in found.found
    assert bool(found.fix) == (state is not Health.OK)


def test_switches_that_slow_the_engine_down_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = warm_up.KeptCode(91, 91, Path("c"), True, compiled=False, checked=True)
    monkeypatch.setattr(warm_up, "kept_code", lambda: slow)
    assert by_name()["array engine"].fix == "unset NUMBA_DISABLE_JIT"


def test_the_code_that_is_kept_is_found_without_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = warm_up.kept_code()
    assert 80 < found.kernels < 200
    assert 0 <= found.kept <= found.kernels
    assert found.lanes in (4, 8)
    assert warm_up._is_writable(tmp_path / "deep" / "below") is True
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert warm_up._is_writable(tmp_path) is False


@pytest.mark.parametrize(
    ("version", "requirement", "whether"),
    [
        ("0.60", "numba>=0.60,<0.70", True),
        ("0.9", "numba>=0.60,<0.70", False),
        ("0.70.0", "numba>=0.60,<0.70", False),
        ("1.9.0.post1", "vl-convert-python>=1.7; extra == 'dev'", True),
        ("2.0rc1", "x<2", False),  # a release candidate of 2.0 is not below 2
        ("2.1rc1", "x>=2", True),  # an installed release candidate satisfies a lower bound
        ("3", "x", True),
        ("0.1-custom", "x>=0", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, requirement: str, whether: bool) -> None:
    assert fits(version, Requirement(requirement)) is whether


def test_long_lists_are_shortened_unless_all_is_wanted(relaycast: Command) -> None:
    short, long = relaycast("doctor").out, relaycast("doctor", "-v").out
    assert "(--verbose names them)" in short
    assert "sortedcontainers" in long
    assert "sortedcontainers" not in short
