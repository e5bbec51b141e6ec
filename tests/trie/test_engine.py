"""Which engine does the work: compiled kernels are waited for where the work takes longer than they do."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relaycast_trie import engine
from relaycast_trie.engine import ARRAY_FROM, ARRAY_FROM_UNCOMPILED, kernels_are_compiled, takes_array

CODE = engine.COMPILED_LATE.replace("*", "0")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Kernels in a folder of their own, a day old, of a process that has not loaded them."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    aged(folder / "seal.py", days=1)
    monkeypatch.setattr(engine, "KERNELS", folder)
    monkeypatch.setattr(engine, "kernels_are_loaded", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernels_are_compiled.cache_clear()
    yield folder
    kernels_are_compiled.cache_clear()


def aged(path: Path, *, days: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))


def test_a_medium_trie_waits_for_no_compiler(sources: Path) -> None:
    assert not kernels_are_compiled()
    assert not takes_array("auto", ARRAY_FROM_UNCOMPILED - 1)
    assert takes_array("auto", ARRAY_FROM_UNCOMPILED)
    assert takes_array("array", 1)


@pytest.mark.parametrize("kept", ["kernels/__pycache__", "home/numba/kernels_0a1b"])
def test_a_medium_trie_takes_kernels_that_an_earlier_run_has_compiled(sources: Path, kept: str) -> None:
    aged(sources.parent / kept / CODE, days=0)
    assert takes_array("auto", ARRAY_FROM)
    assert not takes_array("auto", ARRAY_FROM - 1)


def test_kernels_compiled_from_older_sources_do_not_count(sources: Path) -> None:
    aged(sources / "__pycache__" / CODE, days=2)
    assert not takes_array("auto", ARRAY_FROM)


def test_a_named_cache_folder_takes_the_place_of_all_others(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = sources.parent / "named"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(named))
    aged(sources / "__pycache__" / CODE, days=0)
    assert not kernels_are_compiled()
    kernels_are_compiled.cache_clear()
    aged(named / "kernels_0a1b" / CODE, days=0)
    assert kernels_are_compiled()


def test_numba_names_its_files_as_they_are_looked_for() -> None:
    from relaycast_trie.kernels import seal  # noqa: PLC0415 - loads the compiler

    settle: Any = seal.settle
    cache = settle._cache._impl
    assert Path(f"{cache.filename_base}.nbi").match(engine.COMPILED_LATE)
