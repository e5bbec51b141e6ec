"""Every kernel is held against a twin: by a test that names it, or as a part of a kernel that has such a test."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from relaycast_trie import kernels
from relaycast_trie.array.warm_up import all_kernels
from relaycast_trie.kernels.disk_cache import CHECKED
from rooms import ROOMS, ROOT
from twins import twin_of

KERNELS = Path(kernels.__file__).parent
DECORATORS = {"kernel", "face", "inlined", "allocating_kernel", "locked_kernel"}
FUNCTIONS = {
    f"{file.stem}.{node.name}": node
    for file in sorted(KERNELS.glob("*.py"))
    for node in ast.walk(ast.parse(file.read_text()))
    if isinstance(node, ast.FunctionDef) and DECORATORS & {ast.unparse(it) for it in node.decorator_list}
}
"""Every function that is declared a kernel, as ``module.name``."""

PART_OF = {
    "at_once._largest": "at_once.root_at_once",
    "at_once._sort_few": "at_once.encode_at_once",
    "at_once._put_values": "at_once.get_at_once",
    "build._index_bits": "build.rank_strings",
    "build._attach": "build.build_branches",
    "compact._are_named": "compact.full_list",
    "compact._children_end": "compact.plan_compact",
    "compact._value_end": "compact.encode_walk",
    "compact._write_full": "compact.decode_levels",
    "compact._write_head": "compact.encode_walk",
    "decode._children": "decode.plan_node",
    "encode._new_batch": "encode.refer_to_entries",
    "encode._refer_to_entries": "encode.refer_to_entries",
    "encode._refer_to_leaves": "encode._refer_to_entries",
    "encode._refer_to_level": "encode.refer_to_branches",
    "get.collect_proof": "get.collect_proofs",
    "python_lists._copy_string": "python_lists._gather_items",
    "python_lists._gather_items": "python_lists._gather",
    "python_lists.put_string": "python_lists._scatter",
    "get.copy_hashes": "get.hashes_of",
    "get._list_hashed": "get.hashes_of",
    "settle._give_samples": "settle.change",
    "settle._hash_stale": "settle.change",
    "settle._list_below": "settle._list_stale",
    "settle._settle_state": "settle._hash_stale",
    "settle._take_item": "settle._hash_stale",
    "settle._write_item": "settle._hash_stale",
    "side_by_side._are_alike": "side_by_side.walk_side_by_side",
    "side_by_side._compare_path": "side_by_side._under",
    "side_by_side._entry": "side_by_side.walk_side_by_side",
    "side_by_side._equal": "side_by_side._are_alike",
    "side_by_side._find": "side_by_side._read",
    "side_by_side._first_key": "side_by_side._place",
    "side_by_side._from_nibble": "side_by_side._split",
    "side_by_side._is_same_reference": "side_by_side._is_same_side",
    "side_by_side._is_same_side": "side_by_side.walk_side_by_side",
    "side_by_side._lead": "side_by_side._split",
    "side_by_side._note_read": "side_by_side._take",
    "side_by_side._pay": "side_by_side._take",
    "side_by_side._place": "side_by_side._read",
    "side_by_side._push": "side_by_side._split",
    "side_by_side._read": "side_by_side.walk_side_by_side",
    "side_by_side._split": "side_by_side.walk_side_by_side",
    "side_by_side._split_both": "side_by_side.walk_side_by_side",
    "side_by_side._take": "side_by_side._read",
    "side_by_side._under": "side_by_side._split",
    "side_by_side._value": "side_by_side._split",
    "tables.column_in": "get.find_entries",
    "update._add_entry": "update.put_into",
    "update._collapse": "update._remove",
    "update._freshen_path": "update.put_into",
    "update._hang": "update.put_into",
    "update._mark_all": "update.slots_below",
    "update._mark_below": "update._mark_all",
    "update._note_retired": "update.put_entries",
    "update._replace_value": "update.put_into",
    "update._split": "update.put_into",
    "verify._walk": "verify.verify_proofs",
    "witness._list_children": "witness._list_left",
    "witness._enter_branch": "witness._list_left",
    "witness._list_left": "witness._list_witnesses",
    "witness._list_witnesses": "witness.witnesses_of",
    "witness._next_child": "witness._list_left",
    "witness._places": "witness._list_witnesses",
    "witness._puts": "witness._visit_leaf",
    "witness._rooms": "witness.witnesses_of",
    "witness._visit_leaf": "witness._list_left",
}
"""Small or private kernels whose work a twin of their caller shows: each with one kernel that calls it."""


def declared() -> Iterator[tuple[str, str, str]]:
    """Yield each kernel that a test is the ``twin_of``, the test, and the text of its file."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        text = file.read_text()
        for node in ast.parse(text).body if f"@{twin_of.__name__}(" in text else ():
            for it in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(it, ast.Call) and ast.unparse(it.func) == twin_of.__name__:
                    assert isinstance(node, ast.FunctionDef)
                    yield from ((ast.literal_eval(kernel), f"{file.stem}.{node.name}", text) for kernel in it.args)


DECLARED = tuple(declared())
TWINS = {kernel: test for kernel, test, _ in DECLARED}


def test_every_kernel_has_a_twin_or_is_part_of_one_that_has() -> None:
    """A kernel that stands here is new: write its twin and a test that is ``twin_of`` it."""
    assert sorted(FUNCTIONS.keys() - TWINS.keys() - PART_OF.keys()) == []


def test_only_kernels_that_are_there_are_declared_and_each_in_one_way() -> None:
    assert sorted(TWINS.keys() - FUNCTIONS.keys()) == []
    assert sorted(PART_OF.keys() - FUNCTIONS.keys()) == []
    assert sorted(TWINS.keys() & PART_OF.keys()) == []


def test_a_test_names_the_kernels_that_it_is_the_twin_of() -> None:
    used = {test: used_in(text) for _, test, text in DECLARED}
    assert [(kernel, test) for kernel, test in TWINS.items() if kernel.partition(".")[2] not in used[test]] == []


@cache
def used_in(text: str) -> set[str]:
    """Return the names and attributes that the text of a file uses."""
    found = (it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.Name | ast.Attribute))
    return {it.id if isinstance(it, ast.Name) else it.attr for it in found}


def test_a_test_that_is_a_twin_is_one_that_runs() -> None:
    assert [test for test in TWINS.values() if not test.partition(".")[2].startswith("test_")] == []


@pytest.mark.parametrize("part", PART_OF)
def test_a_part_is_called_by_the_kernel_that_shows_its_work(part: str) -> None:
    caller = PART_OF[part]
    called = {ast.unparse(it.func) for it in ast.walk(FUNCTIONS[caller]) if isinstance(it, ast.Call)}
    assert part.partition(".")[2] in called
    above = [part]
    while above[-1] in PART_OF:
        above.append(PART_OF[above[-1]])
        assert above.count(above[-1]) == 1, "parts of one another, and no twin"
    assert above[-1] in TWINS


def test_a_kernel_that_other_modules_call_has_a_twin_of_its_own() -> None:
    imported = {
        f"{node.module}.{name.name}".removeprefix(f"{kernels.__name__}.")
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        if file.parent != KERNELS and f"{kernels.__name__}." in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    called = imported & FUNCTIONS.keys()
    assert len(called) > 30
    assert sorted(called - TWINS.keys()) == []


@pytest.mark.skipif(CHECKED, reason="where indices are checked there are other kernels, or none")
def test_what_is_declared_a_kernel_is_what_the_compiler_is_given() -> None:
    imported = {f"{it.py_func.__module__.rpartition('.')[2]}.{it.py_func.__name__}" for it in all_kernels()}
    assert imported == FUNCTIONS.keys()


@pytest.mark.slow
def test_twins_agree_with_kernels_that_are_not_compiled(tmp_path: Path) -> None:
    outer = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    tests = sorted({str(Path(__file__).with_name(test.replace(".", ".py::"))) for test in TWINS.values()})
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**outer, "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stdout[-8_000:]
