"""Kernels that walk two tries side by side, against naive readers of both."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exercise.drawing import Exercise
from exercise.walks import nodes_come_and_go, paths_are_followed, two_tries_are_walked
from relaycast_trie.array.side_by_side import KeyColumn
from relaycast_trie.kernels import side_by_side
from searches import examples
from twins import twin_of

KERNELS = (
    side_by_side.walk_side_by_side,
    side_by_side.enter_nodes,
    side_by_side.mark_nodes,
    side_by_side.share_nibbles,
    side_by_side.reference_bytes_aside,
)
"""What the tests here show."""


@twin_of("side_by_side.walk_side_by_side")
def test_a_walk_finds_what_a_naive_reader_finds() -> None:
    for seed in range(examples(200)):
        two_tries_are_walked(Exercise(seed))


@twin_of("side_by_side.reference_bytes_aside")
def test_paths_lead_through_the_nodes_that_a_naive_reader_finds() -> None:
    for seed in range(examples(200)):
        paths_are_followed(Exercise(seed))


@twin_of("side_by_side.enter_nodes", "side_by_side.mark_nodes")
def test_a_table_marks_the_nodes_that_a_dictionary_has() -> None:
    for seed in range(examples(60)):
        nodes_come_and_go(Exercise(seed))


@twin_of("side_by_side.share_nibbles")
@given(st.sets(st.lists(st.sampled_from([0, 1, 16, 255]), min_size=32, max_size=32).map(bytes), max_size=9))
def test_keys_share_the_nibbles_before_they_part(some: set[bytes]) -> None:
    keys = sorted(some)
    shared = [0] * len(keys)
    for i in range(1, len(keys)):
        shared[i] = next(it for it in range(64) if keys[i].hex()[it] != keys[i - 1].hex()[it])
    assert np.array_equal(KeyColumn(keys).shared, shared)
