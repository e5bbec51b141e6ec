"""Each kernel computes what its slow twin computes; and kernels run checked, uncompiled, uncached and forked."""

import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array
from kernel_process import ROOT, run
from naive import ascending_unique, by_height, nibbles, packed
from relaycast_trie import ArrayTrie, CodecError, HashedValue, Leaf, decode_node, node
from relaycast_trie.array.columns import ascending, column_of_list, joined, strings_of, take
from relaycast_trie.array.kept_code import all_kernels
from relaycast_trie.kernels import decode, encode
from relaycast_trie.kernels.build import order_by_height
from relaycast_trie.node_codec import encode_node
from relaycast_trie.scale import encode_compact
from strategies import keys, nodes
from twins import twin_of


@given(
    st.lists(keys | st.binary(min_size=9, max_size=9), max_size=30),
    st.sampled_from([b"", b"p" * 5, b"p" * 8, b"p" * 16, bytes(24)]),
)
def test_strings_ascend(some: list[bytes], prefix: bytes) -> None:
    strings = [prefix + string for string in some]
    given_column, count = column_of_list(strings)
    order = ascending(given_column, count)
    assert order.tolist() == ascending_unique(strings)
    assert strings_of(take(given_column, order), len(order)) == sorted(set(strings))
    both, total = joined([(given_column, count), (given_column, count)])
    assert strings_of(both, total) == strings * 2


@twin_of("build.order_by_height")
@given(st.lists(st.integers(0, 6), max_size=30))
def test_nodes_are_ordered_by_height(heights: list[int]) -> None:
    order, levels = np.zeros(len(heights), np.int32), np.zeros(9, np.int64)
    steps = order_by_height(np.array(heights, np.int32), len(heights), order, levels)
    assert [order[levels[i] : levels[i + 1]].tolist() for i in range(steps)] == by_height(heights)


@twin_of("encode.write_partial")
@given(keys, st.data())
def test_partial_keys_are_packed(key: bytes, data: st.DataObject) -> None:
    path = nibbles(key)
    start = data.draw(st.integers(0, len(path)))
    end = data.draw(st.integers(start, len(path)))
    out = np.zeros(len(key) + 80, np.uint8)
    size = encode.write_partial(out, 0, array(key), 0, start, end)
    assert out[:size].tobytes() == packed(path[start:end])


@twin_of("encode.write_compact")
@given(st.sampled_from([0, 1, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, (1 << 32) - 1]))
def test_compact_lengths_are_written(number: int) -> None:
    out = np.zeros(8, np.uint8)
    size = encode.write_compact(out, 0, number)
    assert out[:size].tobytes() == encode_compact(number)


@twin_of("encode.write_header", "encode.header_size")
@pytest.mark.parametrize(("kind", "mask"), [(0x40, 0x3F), (0x20, 0x1F), (0x10, 0x0F)])
@pytest.mark.parametrize(
    "count", [0, 1, 13, 14, 15, 16, 30, 31, 62, 63, 64, 268, 269, 270, 285, 286, 317, 318, 573, 65535]
)
def test_headers_are_written(kind: int, mask: int, count: int) -> None:
    out = np.zeros(300, np.uint8)
    size = encode.write_header(out, 0, kind, mask, count)
    value: node.Value = b"" if kind == 0x40 else HashedValue(b"\x00" * 32)
    if kind != 0x10:
        assert encode_node(Leaf(b"\x00" * count, value)).startswith(out[:size].tobytes())
    assert encode.header_size(mask, count) == size


@twin_of("decode.plan_node", "decode.child_place", "decode.partial_fits")
@given(st.binary(max_size=80) | nodes.map(encode_node), st.binary(max_size=3), st.data())
def test_plans_say_what_the_codec_says(encoded: bytes, behind: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(encoded)) | st.just(len(encoded)))
    encoded = encoded[:cut]
    whole = array(b"\xff" + encoded + behind)
    plan = np.zeros(decode.PLAN, np.int64)
    accepted = decode.plan_node(whole, 1, len(encoded), plan, 0)
    try:
        expected = decode_node(encoded)
    except CodecError:
        assert not accepted
        return
    assert accepted
    assert (
        plan[decode.KIND]
        == {"Empty": decode.EMPTY, "Leaf": decode.LEAF, "Branch": decode.BRANCH}[type(expected).__name__]
    )
    if isinstance(expected, node.Empty):
        return
    start, size = int(plan[decode.VALUE_AT]), int(plan[decode.VALUE_SIZE])
    value = expected.value
    if value is None:
        assert size == decode.NO_VALUE
    elif isinstance(value, HashedValue):
        assert size == decode.HASHED
        assert whole[start : start + 32].tobytes() == value.hash
    else:
        assert whole[start : start + size].tobytes() == value
    path = [*expected.partial, 7]
    for depth in (0, 1):
        key = packed([0] * depth + path + [0] * ((depth + len(path)) % 2))
        assert decode.partial_fits(whole, plan, 0, array(key), 0, len(key), depth)
    if expected.partial:
        path[data.draw(st.integers(0, len(expected.partial) - 1))] ^= data.draw(st.integers(1, 15))
        for depth in (0, 1):
            key = packed([0] * depth + path + [0] * ((depth + len(path)) % 2))
            assert not decode.partial_fits(whole, plan, 0, array(key), 0, len(key), depth)
    if isinstance(expected, node.Branch):
        for way, child in enumerate(expected.children):
            at, length = decode.child_place(whole, plan, 0, way)
            assert (None if length < 0 else whole[at : at + length].tobytes()) == child


def kernel_names() -> set[str]:
    return {f"{it.py_func.__module__.rpartition('.')[2]}.{it.py_func.__name__}" for it in all_kernels()}


EXERCISE = str(ROOT / "tests" / "kernel_exercise.py")

COMPILED_ALONE = {
    "lanes._hash_short",
    "gather._gather",
    "handover._fill_cells",
    "scatter._scatter",
    "scatter.put_string",
    *(f"at_once.{name}_at_once" for name in ("decode", "get", "prove", "root", "verify")),
    "at_once._largest",
    "at_once._put_values",
}
"""Where nothing is compiled, hashlib, Python's own functions and other kernels stand in their place."""


@pytest.mark.slow
def test_kernels_work_uncompiled_and_none_is_left_out() -> None:
    """A kernel that fails here is new, or no longer called: ``kernel_exercise`` is to call every one."""
    called = set(run(EXERCISE, "3", NUMBA_DISABLE_JIT="1").split())
    assert kernel_names() - called == COMPILED_ALONE


@pytest.mark.slow
def test_kernels_work_with_every_index_checked_and_none_is_left_out(tmp_path: Path) -> None:
    """Nothing was compiled before, so what is compiled was called, or is called by a kernel that was.

    Which of the latter are reached shows where nothing is compiled.
    """
    called = set(run(EXERCISE, "60", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)).split())
    assert not kernel_names() - called


def test_the_plain_engine_loads_neither_the_compiler_nor_numpy() -> None:
    script = """
import sys, relaycast_trie as t
db, root = t.build_database({b'a': b'b'}, state_version=t.StateVersion.V1)
proof = t.StorageProof.generate(db, root, [b'a'])
(verified,) = t.StorageProof.verify_many([t.trie_root({b'a': b'b'})], [proof], [[b'a']])
print(verified[b'a'], {'numba', 'numpy'} & sys.modules.keys())
"""
    assert run("-c", script).strip() == "b'b' set()"


COMPILE_ONE = "from relaycast_trie.kernels.memory import leading_zeros; print(leading_zeros(1))"
COMPILE_TWO = f"{COMPILE_ONE}; from relaycast_trie.kernels.memory import lowest_bit; print(lowest_bit(1))"
AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to change an owner")
COMPILING = "relaycast: compiling the array engine for this CPU, once"


def copied_to(folder: Path) -> Path:
    """Return a folder with a package of kernels for which nothing is compiled."""
    source = ROOT / "trie" / "relaycast_trie"
    shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def compiles(place: Path, **environment: str) -> bool:
    """Return whether a process with the kernels from ``place`` has to compile the one that it calls."""
    said = run("-c", COMPILE_ONE, PYTHONPATH=str(place), **environment)
    assert "63" in said
    assert (COMPILING in said) == ("compiled" in said.splitlines()[-1])
    return COMPILING in said


def test_where_no_cache_folder_can_be_made_every_process_compiles(tmp_path: Path) -> None:
    """Neither the folder that is named, nor one beside the sources, nor the user's."""
    place, blocked = copied_to(tmp_path), tmp_path / "file"
    for file in (blocked, place / "relaycast_trie" / "kernels" / "__pycache__"):
        file.write_bytes(b"")
    below = str(blocked / "below")
    for _ in range(2):
        assert compiles(place, NUMBA_CACHE_DIR=below, XDG_CACHE_HOME=below, HOME=below)


@pytest.mark.slow
def test_where_the_named_folder_cannot_be_made_code_is_kept_beside_its_sources(tmp_path: Path) -> None:
    place, blocked = copied_to(tmp_path / "place"), tmp_path / "file"
    blocked.write_bytes(b"")
    assert [compiles(place, NUMBA_CACHE_DIR=str(blocked)) for _ in range(2)] == [True, False]
    assert list((place / "relaycast_trie" / "kernels" / "__pycache__").glob("memory.leading_zeros-*.nbc"))


@pytest.mark.slow
def test_a_folder_that_goes_away_costs_time_alone(tmp_path: Path) -> None:
    place, named = copied_to(tmp_path / "place"), tmp_path / "named"
    lose = f"import shutil; shutil.rmtree({str(named)!r}); open({str(named)!r}, 'w').close()"
    script = f"from relaycast_trie.kernels import memory; {lose}; print(memory.leading_zeros(1))"
    assert "63" in run("-c", script, PYTHONPATH=str(place), NUMBA_CACHE_DIR=str(named))


def test_compiled_code_serves_every_copy_of_the_same_kernels_in_folders_and_archives(tmp_path: Path) -> None:
    """A cluster unpacks them somewhere else for every application, or imports them from the archive."""
    first, second = copied_to(tmp_path / "first"), copied_to(tmp_path / "second")
    archive = Path(shutil.make_archive(str(tmp_path / "rooms"), "zip", second))
    shared = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert [compiles(place, **shared) for place in (first, second, archive)] == [True, False, False]


@pytest.mark.slow
def test_kernels_in_an_archive_are_kept_in_the_users_folder(tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "rooms"), "zip", copied_to(tmp_path / "place")))
    home = str(tmp_path / "home")
    assert [compiles(archive, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=home, HOME=home) for _ in range(2)] == [True, False]


@pytest.mark.slow
def test_compiled_code_is_not_taken_for_that_of_other_kernels(tmp_path: Path) -> None:
    """Wherever the difference lies: code of one kernel contains others."""
    first, second = copied_to(tmp_path / "first"), copied_to(tmp_path / "second")
    change(second)
    shared = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert [compiles(place, **shared) for place in (first, second, first)] == [True, True, False]
    beside = {"NUMBA_CACHE_DIR": ""}
    assert [compiles(first, **beside), compiles(first, **beside)] == [True, False]
    change(first)
    assert [compiles(first, **beside), compiles(first, **beside)] == [True, False]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        "flipped",
        *(
            pytest.param(it, marks=pytest.mark.slow)
            for it in ("truncated", "empty", "swapped", "deleted", "other bytes")
        ),
    ],
)
def test_damaged_code_is_compiled_anew(kept: Path, tmp_path: Path, kind: str, damage: str) -> None:
    shutil.copytree(kept, tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob(f"*kernels.memory.leading_zeros*.{kind}")
    data = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(data[: len(data) // 2])
        case "empty":
            file.write_bytes(b"")
        case "flipped":
            middle = len(data) // 2
            file.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        case "swapped":
            (other,) = (tmp_path / "kept").rglob(f"*kernels.memory.lowest_bit*.{kind}")
            file.write_bytes(other.read_bytes())
        case "deleted":
            file.unlink()
        case "other bytes":
            file.write_bytes(b"\x80\x05cos\nsystem\n" * 100)
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert [compiles(ROOT / "trie", **named) for _ in range(2)] == [True, False]


UNTRUSTED = "relaycast: compiled code in {} is not used: {}\n"


def said_by(place: Path, folder: Path) -> str:
    return run("-c", COMPILE_ONE, PYTHONPATH=str(place), NUMBA_CACHE_DIR=str(folder))


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("harm", ["mode", pytest.param("owner", marks=AS_ROOT), "link"])
def test_code_that_others_may_have_written_is_compiled_anew(kept: Path, tmp_path: Path, kind: str, harm: str) -> None:
    shutil.copytree(kept, tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob(f"*kernels.memory.leading_zeros*.{kind}")
    match harm:
        case "mode":
            file.chmod(0o666)
            reason = "other users can write to it (mode 0666)"
        case "owner":
            os.chown(file, 65_534, -1)
            reason = f"it belongs to user 65534, this process runs as {os.geteuid()}"
        case "link":
            file.symlink_to(file.rename(tmp_path / "elsewhere"))
            reason = "it is a link"
    said = said_by(ROOT / "trie", tmp_path / "kept")
    assert said.count(UNTRUSTED.format(file, reason)) == said.count("is not used") == 1
    assert COMPILING in said
    again = said_by(ROOT / "trie", tmp_path / "kept")
    assert "is not used" not in again
    assert COMPILING not in again


@pytest.mark.parametrize("harm", ["mode", pytest.param("owner", marks=AS_ROOT)])
def test_a_folder_that_others_may_write_is_not_used(kept: Path, tmp_path: Path, harm: str) -> None:
    place = copied_to(tmp_path / "place")
    shutil.copytree(kept, tmp_path / "kept")
    (folder,) = (tmp_path / "kept").glob("kernels_*")
    if harm == "mode":
        folder.chmod(0o777)
        reason = "other users can write to it (mode 0777)"
    else:
        os.chown(folder, 65_534, -1)
        reason = f"it belongs to user 65534, this process runs as {os.geteuid()}"
    before = sorted(folder.iterdir())
    said = said_by(place, tmp_path / "kept")
    assert UNTRUSTED.format(folder, reason) in said
    assert COMPILING in said
    assert sorted(folder.iterdir()) == before


def test_kept_code_and_locks_are_for_their_user_alone(kept: Path) -> None:
    files = [file for file in kept.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} >= {".nbi", ".nbc", ".lock"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert [folder.stat().st_mode & 0o777 for folder in kept.iterdir()] == [0o700]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of two kernels."""
    folder = tmp_path_factory.mktemp("kept")
    run("-c", COMPILE_TWO, PYTHONPATH=str(ROOT / "trie"), NUMBA_CACHE_DIR=str(folder))
    return folder


def change(place: Path) -> None:
    """Make another kernel of one that has nothing to do with the one that is compiled."""
    with (place / "relaycast_trie" / "kernels" / "sort.py").open("a") as stream:
        stream.write("# another kernel\n")


def _prove(trie: ArrayTrie) -> bytes:
    return trie.prove([b"\x01" * 32]).encode()


def test_forked_workers_prove_what_their_parent_proves() -> None:
    trie = ArrayTrie.from_arrays([bytes([i]) * 32 for i in range(100)], [bytes([i]) * 40 for i in range(100)])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert set(pool.map(_prove, [trie] * 4)) == {_prove(trie)}
