"""What hypothesis lets runtimes do to their storage, and doing it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion
from relaycast_wasm.overlay import OverlayedChanges
from strategies import STOCK, crowded_keys, values

Step = tuple[Any, ...]
"""The name of a method and its arguments; a key and the name of a trie come first."""

CHILDREN = [ChildInfo(b"a"), ChildInfo(b"b")]

names = st.sampled_from([None, None, None, *CHILDREN])
prefixes = st.sampled_from([key for key in STOCK if 0 < len(key) < 3])
limits = st.none() | st.integers(0, 4)
items = st.sampled_from([b"", b"item", bytes(70)])

place = st.tuples(crowded_keys, names)
writes = st.one_of(
    st.tuples(st.just("put"), place, st.none() | values),
    st.tuples(st.just("put"), place, values),
    st.tuples(st.just("append"), place, items),
    st.tuples(st.just("clear_prefix"), st.tuples(prefixes, names), limits, st.none() | crowded_keys),
    st.tuples(st.just("clear_prefix"), st.tuples(st.just(b""), st.sampled_from(CHILDREN)), limits, st.none()),
)
looks = st.tuples(st.sampled_from(["get", "exists", "next_key"]), place)
turns = st.tuples(st.sampled_from(["start_transaction", "roll_back_transaction", "commit_transaction"]))
child_roots = st.tuples(st.just("child_root"), st.sampled_from(CHILDREN))
roots = st.tuples(st.just("root"))
anything_but_roots = st.one_of(writes, writes, looks, looks, turns, child_roots)
steps: st.SearchStrategy[list[Step]] = st.lists(anything_but_roots, max_size=24)
steps_and_roots: st.SearchStrategy[list[Step]] = st.lists(st.one_of(anything_but_roots, roots), max_size=16)

tries = st.dictionaries(crowded_keys, values, max_size=12)
contents = st.fixed_dictionaries({None: tries, CHILDREN[0]: tries, CHILDREN[1]: tries})


def take(overlay: OverlayedChanges, step: Step, version: StateVersion) -> Any:
    """Let the overlay take one step, and return what it says; transactions that are not open are not ended."""
    kind, *given = step
    if kind == "root":
        return overlay.root(version)
    if kind == "child_root":
        return overlay.child_root(given[0], version)
    if kind in {"roll_back_transaction", "commit_transaction"} and not overlay.depth:
        return None
    if kind.endswith("_transaction"):
        return getattr(overlay, kind)()
    (key, name), *rest = given
    if kind == "clear_prefix":
        return overlay.clear_prefix(key, name, limit=rest[0], cursor=rest[1])
    return getattr(overlay, kind)(key, *rest, name)


def take_all(overlay: OverlayedChanges, taken: Sequence[Step], version: StateVersion) -> list[Any]:
    """Return what the overlay says to each step, and the root in the end, with all transactions committed."""
    said = [take(overlay, step, version) for step in taken]
    while overlay.depth:
        overlay.commit_transaction()
    return [*said, overlay.root(version)]
