"""Past states: each block's values are those of a copy that was made then."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from partial_states import Pair, random_key
from relaycast_node.chain.versions import PastState, TrieVersions
from relaycast_trie import MissingNode

KEYS = st.sampled_from([b"a", b"ab", b"abc", b"b", b"ba", b"c", b""])
VALUES = st.none() | st.binary(min_size=1, max_size=2)
BLOCKS = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=8)


def copies(genesis: dict[bytes, bytes], blocks: list[dict[bytes, bytes | None]]) -> list[dict[bytes, bytes]]:
    held = [dict(genesis)]
    for changes in blocks:
        after = {**held[-1], **{key: value for key, value in changes.items() if value is not None}}
        held.append({key: value for key, value in after.items() if changes.get(key, b"") is not None})
    return held


@given(st.dictionaries(KEYS, st.binary(min_size=1, max_size=2), max_size=5), BLOCKS, st.data())
def test_every_past_state_is_as_it_was(
    genesis: dict[bytes, bytes], blocks: list[dict[bytes, bytes | None]], data: st.DataObject
) -> None:
    versions = TrieVersions(genesis)
    asked_early = data.draw(st.booleans())
    if asked_early:
        list(versions.keys(0))
    for number, changes in enumerate(blocks, 1):
        versions.note(number, changes)
    for number, held in enumerate(copies(genesis, blocks)):
        state = PastState(versions, {}, number)
        assert dict(state.pairs()) == held
        prefix, after = data.draw(KEYS), data.draw(st.none() | KEYS)
        expected = [key for key in sorted(held) if key.startswith(prefix) and (after is None or key > after)]
        assert list(state.keys(prefix, after=after)) == expected


@given(st.dictionaries(KEYS, st.binary(min_size=1, max_size=2), max_size=5), BLOCKS)
def test_blocks_that_are_undone_leave_nothing(
    genesis: dict[bytes, bytes], blocks: list[dict[bytes, bytes | None]]
) -> None:
    versions = TrieVersions(genesis)
    for number, changes in enumerate(blocks, 1):
        versions.note(number, changes)
    for number, changes in reversed(list(enumerate(blocks, 1))):
        versions.undo(number, changes)
    assert dict(PastState(versions, {}, 99).pairs()) == genesis


def test_a_child_trie_that_never_held_anything_is_empty() -> None:
    assert list(PastState(TrieVersions({b"k": b"v"}), {}, 3).child(b"none").pairs()) == []


def page(state: PastState, prefix: bytes, after: bytes | None, count: int) -> list[bytes]:
    return list(islice(state.keys(prefix, after=after), count))


@given(st.integers(0, 1 << 32))
def test_a_state_with_gaps_answers_as_the_whole_one_or_by_error(seed: int) -> None:
    random = Random(seed)
    pair = Pair(random)
    forked = TrieVersions(pair.partial.top.values, pair.partial.top.gaps)
    whole = TrieVersions(pair.whole.top.values)
    states = [PastState(it, {}, number) for number in (0, 1) for it in (forked, whole)]
    known = sorted(pair.partial.top.values)
    changes = {key: random.choice([None, b"new"]) for key in random.sample(known, min(3, len(known)))}
    for versions in (forked, whole):
        versions.note(1, changes)
    for fork, full in (states[:2], states[2:]):
        for _ in range(12):
            key, after, count = random_key(random), random.choice([None, random_key(random)]), random.randrange(1, 6)
            prefix = key[: random.randrange(3)]
            asks: list[Callable[[PastState], object]] = [
                lambda state, key=key: state.get(key),  # type: ignore[misc]
                partial(page, prefix=prefix, after=after, count=count),
                lambda state, prefix=prefix: list(state.pairs(prefix)),  # type: ignore[misc]
            ]
            for ask in asks:
                with suppress(MissingNode):
                    found = ask(fork)
                    assert found == ask(full)
