"""Compiled modules on disk: found again, trusted only as they were written, and never in the way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import wasmtime

from relaycast_wasm import WasmRuntime
from relaycast_wasm.engine import kept_modules
from relaycast_wasm.engine.engine import Engine
from relaycast_wasm.engine.kept_modules import KeptModules, folder_of
from relaycast_wasm.runtime import empty_overlay
from wasm.text_modules import module
from wasm.text_runtime import text_runtime

CODE = module("(i64.const 0x400000008)", rest='(data (i32.const 8) "same")')


def answer(folder: Path | None, code: bytes = CODE) -> bytes:
    return WasmRuntime.load(code, folder).call("run", b"", empty_overlay()).output


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of what is compiled from here on."""
    sizes: list[int] = []
    compile_ = Engine._compiled

    def counted(self: Engine, wasm: bytes) -> wasmtime.Module:
        sizes.append(len(wasm))
        return compile_(self, wasm)

    monkeypatch.setattr(Engine, "_compiled", counted)
    return sizes


def test_what_was_compiled_once_is_found_again(tmp_path: Path, compiled: list[int]) -> None:
    assert {answer(tmp_path / "deep" / "kept") for _ in range(3)} == {b"same"}
    assert len(compiled) == 1
    (file,) = (tmp_path / "deep" / "kept").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "deep" / "kept").stat().st_mode & 0o777 == 0o700


def test_without_a_folder_nothing_is_kept(tmp_path: Path, compiled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [answer(None) for _ in range(2)] == [b"same"] * 2
    assert len(compiled) == 2
    assert not list(tmp_path.iterdir())


def test_by_default_modules_are_kept_with_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    WasmRuntime.load(CODE)
    assert len(list((tmp_path / "relaycast" / "runtimes").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert folder_of("user") == tmp_path / "home" / ".cache" / "relaycast" / "runtimes"


def test_other_code_and_another_engine_have_names_of_their_own(tmp_path: Path) -> None:
    modules = KeptModules(tmp_path, "one")
    names = {modules.name_of(CODE), modules.name_of(CODE + b"\x00"), KeptModules(tmp_path, "two").name_of(CODE)}
    assert len(names) == 3


def damaged(content: bytes) -> list[bytes]:
    """Return a file with every 97th byte changed, one at a time, and cut or emptied."""
    changed = []
    for place in range(0, len(content), 97):
        copy = bytearray(content)
        copy[place] ^= 0x10
        changed.append(bytes(copy))
    return [*changed, b"", content[:31], content[:32], content[:-1], content + b"\x00", b"text\n" * 100]


def test_a_damaged_file_is_never_run_and_is_made_again(tmp_path: Path, compiled: list[int]) -> None:
    answer(tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    variants = damaged(whole)
    for content in variants:
        file.write_bytes(content)
        assert answer(tmp_path) == b"same"
        assert file.read_bytes()[:32] == whole[:32]
    assert len(compiled) == 1 + len(variants)


@pytest.mark.slow
def test_a_damaged_runtime_is_never_run(tmp_path: Path) -> None:
    """Every 1000th byte of a larger module's file."""
    modules = KeptModules(tmp_path, "engine")
    name = modules.name_of(text_runtime())
    WasmRuntime.load(text_runtime(), tmp_path)
    content = next(tmp_path.iterdir()).read_bytes()
    modules.keep(name, content)
    file = tmp_path / f"{name}.module"
    whole = file.read_bytes()
    assert modules.find(name) == content
    for place in range(0, len(whole), 1_000):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        assert modules.find(name) is None


def test_a_file_under_another_name_is_not_trusted(tmp_path: Path) -> None:
    modules = KeptModules(tmp_path, "engine")
    modules.keep(modules.name_of(b"one"), b"code")
    other = modules.name_of(b"two")
    next(tmp_path.iterdir()).rename(tmp_path / f"{other}.module")
    assert modules.find(other) is None


def test_a_file_that_others_may_write_is_not_trusted(tmp_path: Path) -> None:
    modules = KeptModules(tmp_path, "engine")
    name = modules.name_of(CODE)
    modules.keep(name, b"code")
    assert modules.find(name) == b"code"
    (tmp_path / f"{name}.module").chmod(0o622)
    assert modules.find(name) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    modules = KeptModules(tmp_path / "kept", "engine")
    name = modules.name_of(CODE)
    modules.keep(name, b"code")
    file = tmp_path / "kept" / f"{name}.module"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert modules.find(name) is None
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    KeptModules(tmp_path / "link", "engine").keep(modules.name_of(b"two"), b"code")
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_passed_over(kind: str, tmp_path: Path) -> None:
    modules = KeptModules(tmp_path, "engine")
    place = tmp_path / f"{modules.name_of(CODE)}.module"
    if kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    assert modules.find(modules.name_of(CODE)) is None


def test_a_file_of_somebody_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = KeptModules(tmp_path, "engine")
    name = modules.name_of(CODE)
    modules.keep(name, b"code")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert modules.find(name) is None
    modules.keep(modules.name_of(b"two"), b"code")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert answer(tmp_path / "file" / "below") == b"same"
    assert answer(Path("/proc/none/such")) == b"same"


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_modules, "MOST_FILES", 3)
    modules = KeptModules(tmp_path, "engine")
    names = [modules.name_of(bytes([it])) for it in range(5)]
    for at, name in enumerate(names):
        modules.keep(name, b"code")
        os.utime(tmp_path / f"{name}.module", (at, at))
    assert [modules.find(it) is not None for it in names] == [False, False, True, True, True]


def test_two_threads_and_two_processes_keep_the_same_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: answer(tmp_path), range(8))) == {b"same"}
    program = (
        "import sys; from pathlib import Path; from relaycast_wasm import WasmRuntime\n"
        "WasmRuntime.load(bytes.fromhex(sys.argv[1]), Path(sys.argv[2])).methods"
    )
    command = [sys.executable, "-c", program, CODE.hex(), str(tmp_path / "new")]
    running = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}) for _ in range(2)]
    assert [it.wait(60) for it in running] == [0, 0]
    assert len(list((tmp_path / "new").iterdir())) == 1
