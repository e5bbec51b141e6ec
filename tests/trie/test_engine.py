"""Which engine does the work: compiled kernels are waited for where the work takes longer than they do."""

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_process import run
from relaycast_pallets.frame.tries import EngineChoice
from relaycast_trie import engine
from relaycast_trie.array import warm_up
from relaycast_trie.engine import (
    ARRAY_FROM,
    array_from_uncompiled,
    kernels_are_compiled,
    measured_compile_seconds,
    takes_array,
)

CODE = engine.file_of(engine.BUILDS).replace("*", "0")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Kernels in a folder of their own, a day old, of a process that has not loaded them."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    aged(folder / "get.py", days=1)
    monkeypatch.setattr(engine, "KERNELS", folder)
    monkeypatch.setattr(engine, "kernels_are_loaded", lambda _work: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    for known in (kernels_are_compiled, measured_compile_seconds):
        known.cache_clear()
    yield folder
    for known in (kernels_are_compiled, measured_compile_seconds):
        known.cache_clear()


def aged(path: Path, *, days: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))


def test_a_medium_trie_waits_for_no_compiler(sources: Path) -> None:
    assert not kernels_are_compiled(engine.BUILDS)
    assert not takes_array("auto", 1_249_999)
    assert takes_array("auto", 1_250_000)
    assert takes_array("array", 1)


@pytest.mark.parametrize("kept", ["kernels/__pycache__", "home/numba"])
@pytest.mark.parametrize(
    ("written", "keys"),
    [("40.0", 2_000_000), ("0.1", ARRAY_FROM), *((it, 1_250_000) for it in ("", "x", "null", "-1", "1e9", "NaN"))],
)
def test_a_slow_compiler_is_waited_for_where_there_is_more_to_do(
    sources: Path, kept: str, written: str, keys: int
) -> None:
    """A file that makes no sense counts for nothing."""
    file = sources.parent / kept / engine.COMPILE_SECONDS_FILE
    file.parent.mkdir(parents=True)
    file.write_text(written)
    assert array_from_uncompiled() == keys
    assert [takes_array("auto", size) for size in (keys - 1, keys)] == [False, True]


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
    assert not kernels_are_compiled(engine.BUILDS)
    kernels_are_compiled.cache_clear()
    aged(named / "kernels_0a1b" / CODE, days=0)
    assert kernels_are_compiled(engine.BUILDS)


@pytest.mark.parametrize("work", engine.CROSSOVERS)
def test_numba_names_its_files_as_they_are_looked_for(work: str) -> None:
    module, _, name = work.partition(".")
    kernel: Any = getattr(importlib.import_module(f"relaycast_trie.kernels.{module}"), name)
    assert Path(f"{kernel._cache._impl.filename_base}.nbi").match(engine.file_of(work))


def test_kernels_are_loaded_for_single_proofs_when_plain_work_has_taken_as_long(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_SPENT_NS", {})
    monkeypatch.setitem(sys.modules, "relaycast_trie.kernels.at_once", None)
    monkeypatch.delitem(sys.modules, "relaycast_trie.kernels.at_once")
    half = engine.LOAD_ALL_NS // engine.PLAIN_NS[engine.READS] // 2 + 1
    assert not engine.pays_in_arrays(engine.READS, 100 * half), "nothing is compiled"
    aged(sources / "__pycache__" / engine.file_of(engine.READS).replace("*", "0"), days=0)
    kernels_are_compiled.cache_clear()
    small = engine.CROSSOVERS[engine.READS] - 1
    assert [engine.pays_in_arrays(engine.READS, size) for size in (half, small, half)] == [False, False, True]
    monkeypatch.setattr(engine, "_SPENT_NS", {})
    monkeypatch.setitem(sys.modules, "relaycast_trie.kernels.at_once", sys)
    assert [engine.pays_in_arrays(engine.READS, half // 10) for _ in range(2)] == [False, True]


def test_a_server_takes_arrays_when_a_thread_has_loaded_them(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then ``auto`` stays with plain tries, however much there is to do."""
    began, go = threading.Event(), threading.Event()

    def load() -> None:
        began.set()
        go.wait(60)

    monkeypatch.setattr(warm_up, "load_aside", load)
    monkeypatch.setattr(engine, "_aside", False)
    monkeypatch.setattr(engine, "_loader", None)
    aged(sources / "__pycache__" / CODE, days=0)
    engine.load_aside()
    assert not takes_array("auto", ARRAY_FROM - 1)
    assert not began.is_set(), "nothing is loaded before it pays"
    choice = EngineChoice("auto")
    choice.note(1, 10**7, in_arrays=False)
    assert not choice.moves(in_arrays=False, keys=lambda: 1)
    assert not takes_array("auto", ARRAY_FROM)
    assert takes_array("array", 1)
    assert began.wait(60)
    assert not engine.arrays_are_at_hand()
    go.set()
    loader: Any = engine._loader
    loader.join(60)
    assert takes_array("auto", ARRAY_FROM)
    assert choice.moves(in_arrays=False, keys=lambda: 1)


def test_kernels_that_a_thread_loads_are_compiled_by_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Process:
        def __init__(self, task: Callable[[], object]) -> None:
            done.append(task.__name__)

        def wait(self) -> None:
            done.append("waited")

    monkeypatch.setattr(warm_up, "_is_much_to_compile", lambda: not done)
    monkeypatch.setattr(warm_up, "_process_of", Process)
    monkeypatch.setattr(warm_up, "GROUPS", (lambda: done.append("loaded"),))
    warm_up.load_aside()
    assert done == ["warm_up", "waited", "loaded"]


def answers(*statements: str, **environment: str) -> list[str]:
    """Return what a new process prints, but for what it says of compiling, as it may be the first that does."""
    said = run("-c", "\n".join(statements), **environment).splitlines()
    return " ".join(line for line in said if not line.startswith("relaycast: ")).split()


def test_kernels_are_loaded_once_they_are_called_and_not_when_they_are_imported() -> None:
    assert answers(
        "from relaycast_trie import ArrayTrie, StorageProof",
        "from relaycast_trie.array import array_proofs, forest",
        "from relaycast_trie.engine import BUILDS, CHANGES, VERIFIES, kernels_are_loaded as loaded",
        "print(loaded(BUILDS), loaded(CHANGES), loaded(VERIFIES))",
        "trie = ArrayTrie.from_pairs({bytes([i]): b'value' for i in range(3)})",
        "print(loaded(BUILDS), loaded(CHANGES), loaded(VERIFIES))",
        "trie.remove([b'\\0']); array_proofs.verify_many([trie.root], [StorageProof()], [[]])",
        "print(loaded(BUILDS), loaded(CHANGES), loaded(VERIFIES))",
    ) == ["False", "False", "False", "True", "False", "False", "True", "True", "True"]


def test_a_small_trie_waits_for_no_kernel_that_is_imported_and_neither_loaded_nor_kept(tmp_path: Path) -> None:
    assert answers(
        "import sys",
        "from relaycast_trie import ArrayTrie, trie_root",
        "from relaycast_trie.engine import ARRAY_FROM, takes_array",
        "print(takes_array('auto', ARRAY_FROM))",
        NUMBA_CACHE_DIR=str(tmp_path),
    ) == ["False"]


@pytest.mark.parametrize("imported", ["os", "relaycast_trie.array.array_trie"])
def test_kernels_that_are_not_compiled_are_taken_when_they_are_asked_for_alone(imported: str) -> None:
    assert answers(
        f"import {imported}",
        "from relaycast_trie.engine import takes_array",
        "from relaycast_pallets.frame.tries import EngineChoice",
        "choice = EngineChoice('auto')",
        "choice.note(1_000_000_000, 1_000_000_000, in_arrays=False)",
        "print(takes_array('auto', 1 << 60), choice.loads_in_arrays(1 << 60))",
        "print(choice.moves(in_arrays=False, keys=lambda: 1))",
        "print(takes_array('array', 1), EngineChoice('array').loads_in_arrays(1))",
        NUMBA_DISABLE_JIT="1",
    ) == ["False", "False", "False", "True", "True"]


@pytest.mark.parametrize("kept", ["kernels/__pycache__", "home/numba/kernels_0a1b"])
@pytest.mark.parametrize("cold", [True, False])
def test_what_compiling_took_is_known_to_kernels_of_other_versions(
    sources: Path, monkeypatch: pytest.MonkeyPatch, kept: str, cold: bool
) -> None:
    place = sources.parent / kept
    place.mkdir(parents=True)
    monkeypatch.setattr(warm_up, "GROUPS", (lambda: time.sleep(0.06),))
    monkeypatch.setattr(warm_up, "_is_much_to_compile", lambda: cold)
    monkeypatch.setattr(warm_up, "_process_of", lambda _task: None)
    monkeypatch.setattr(warm_up, "folder", lambda: place)
    assert measured_compile_seconds() is None
    warm_up.warm_up()
    measured = measured_compile_seconds()
    assert measured is None or measured > 0
    assert (measured is not None) == cold
    (sources / "other.py").touch()
    assert not kernels_are_compiled(engine.BUILDS)
    measured_compile_seconds.cache_clear()
    assert measured_compile_seconds() == measured
