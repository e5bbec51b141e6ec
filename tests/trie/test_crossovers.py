"""Crossovers of the two engines: measured once on a machine, never far from the fixed ones, and not needed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaycast_trie import ArrayTrie, StorageProof, engine
from relaycast_trie.array import crossovers
from relaycast_trie.engine import CROSSOVERS, CROSSOVERS_FILE, DECODES, READS, ROOTS, crossover, measured_crossovers
from relaycast_trie.kernels import keeping
from relaycast_trie.kernels.at_once import AT_ONCE

needs_compiler = pytest.mark.skipif(not AT_ONCE, reason="nothing is compiled")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of kept code where nothing was measured, for a process that has its kernels."""
    monkeypatch.setattr(keeping, "folder", lambda: tmp_path)
    monkeypatch.setattr(crossovers, "folder", lambda: tmp_path)
    monkeypatch.setattr(engine, "_LOADED", set(CROSSOVERS))
    measured_crossovers.cache_clear()
    yield tmp_path
    measured_crossovers.cache_clear()


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"at_once.root_at_once": "many"}', '{"at_once.root_at_once": null}', "{}"]
)
def test_what_is_not_measured_or_not_readable_is_the_fixed_number(folder: Path, content: str) -> None:
    assert crossover(ROOTS) == CROSSOVERS[ROOTS]
    (folder / CROSSOVERS_FILE).write_text(content)
    measured_crossovers.cache_clear()
    assert crossover(ROOTS) == CROSSOVERS[ROOTS]


def test_what_was_measured_counts_for_kernels_that_are_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / CROSSOVERS_FILE).write_text(json.dumps({ROOTS: 7, "something else": 1}))
    assert (crossover(ROOTS), crossover(READS)) == (7, CROSSOVERS[READS])
    monkeypatch.setattr(engine, "_LOADED", set())
    assert crossover(ROOTS) == CROSSOVERS[ROOTS]


@needs_compiler
def test_crossovers_are_measured_once_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = crossovers.calibrate()
    assert json.loads((folder / CROSSOVERS_FILE).read_text()) == found == measured_crossovers()
    assert [path.name for path in folder.iterdir()] == [CROSSOVERS_FILE]
    for work, size in found.items():
        assert CROSSOVERS[work] // crossovers.FURTHEST <= size <= CROSSOVERS[work] * crossovers.FURTHEST
    monkeypatch.setattr(crossovers, "measure", lambda: pytest.fail("measured again"))
    assert crossovers.calibrate() == found


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([(250, True), (500, True), (900, True)], 250),
        ([(250, False), (500, True), (900, True)], 500),
        ([(250, True), (500, False), (900, True)], 900),  # won by chance, and not for good
        ([(250, False), (500, False), (900, False)], 901),
        ([(1, True), (2, True)], 125),  # never further than four times from the fixed one
        ([(9_000, False)], 2_000),
    ],
)
def test_the_crossover_is_the_size_from_which_arrays_always_win(seen: list[tuple[int, bool]], expected: int) -> None:
    assert CROSSOVERS[DECODES] == 500
    assert crossovers._crossover(DECODES, seen) == expected


@needs_compiler
def test_both_engines_do_the_same_work_while_they_are_measured() -> None:
    for count in crossovers.KEYS:
        for _, _, plain, array in crossovers._rivals(count):
            left, right = plain(), array()
            if not isinstance(left, bytes | StorageProof):
                left, right = left.values, right.values  # type: ignore[attr-defined]
            assert left == right


def test_few_keys_from_lists_change_a_trie_as_rows_do() -> None:
    held = {bytes([i]) * 32: bytes([i]) * 8 for i in range(60)}
    trie = ArrayTrie.from_pairs(held)
    for keys, values in (
        ([b"\x01" * 32], [b"a" * 8]),
        ([b"\x02" * 32, b"\x03" * 32], [b"b" * 8, b"c" * 8]),
        ([b"\x04" * 32], [b"another length"]),
        ([b"\x05" * 32, b"short"], [b"d" * 8, b""]),
        ([], []),
    ):
        trie.update(keys, values)
        held |= zip(keys, values, strict=True)
        assert trie.root == ArrayTrie.from_pairs(held).root
    with pytest.raises(ValueError, match="2 keys with 1 values"):
        trie.update([b"\x01" * 32, b"\x02" * 32], [b"e" * 8])
    assert trie.root == ArrayTrie.from_pairs(held).root
