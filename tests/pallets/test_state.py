"""A chain's state: flat reads, transactions that leave no trace, and seals whose roots are those of the real trie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_pallets import State, StateDiscarded
from relaycast_trie import CHILD_STORAGE_PREFIX, EMPTY_ROOT, ChildInfo, StateVersion, StorageProof, reference
from shared_vectors import Case, over, unhex, unhex_all, unhex_or_none, unhex_pairs
from strategies import Changes, Pairs, changes, pairs, state_versions

ONE, TWO = ChildInfo(b"one"), ChildInfo(b"two")


class Undone(Exception):
    """Something goes wrong inside a transaction."""


def root_of(top: Pairs, children: dict[ChildInfo, Pairs], version: StateVersion) -> bytes:
    """Return the root from the definition: child roots under their keys in the top trie, empty children left out."""
    named = {
        info.prefixed_storage_key(): reference.trie_root(held, state_version=version)
        for info, held in children.items()
        if held
    }
    return reference.trie_root(top | named, state_version=version)


@over("smoldot/states.json", slices=4)
@pytest.mark.parametrize("version", StateVersion)
def test_states_with_children_have_the_roots_and_proofs_of_smoldot(cases: list[Case], version: StateVersion) -> None:
    for case in cases:
        children = {ChildInfo(unhex(name)): dict(unhex_pairs(held)) for name, held in case["children"].items()}
        loaded = State(dict(unhex_pairs(case["top"])), children, state_version=version)
        written = State(state_version=version)
        for key, value in unhex_pairs(case["top"]):
            written.put(key, value)
        for info, held in children.items():
            for key, value in held.items():
                written.child(info).put(key, value)
        assert written.commit() == loaded.root == unhex(case[f"root_v{version.value}"])
        assert written.snapshot() == loaded.snapshot()
        for name, root in case[f"child_roots_v{version.value}"].items():
            assert written.get(ChildInfo(unhex(name)).prefixed_storage_key()) == unhex(root)
        for proven in case["child_proofs"]:
            info, keys = ChildInfo(unhex(proven["child"])), unhex_all(proven["keys"])
            proof = written.prove_child_read(written.root, info, keys)
            values = proof.verify_child(written.root, info, keys, strict=True).values
            assert [values[key] for key in keys] == [unhex_or_none(value) for value in proven["values"]]


@given(pairs, pairs, st.lists(st.tuples(changes, changes), max_size=4), state_versions)
def test_every_seal_has_the_root_that_the_definition_gives(
    top: Pairs, child: Pairs, blocks: list[tuple[Changes, ...]], version: StateVersion
) -> None:
    state = State(top, {ONE: child}, state_version=version, window=2)
    held: tuple[Pairs, Pairs] = (dict(top), dict(child))
    for block in blocks:
        for storage, model, changed in zip((state.top, state.child(ONE)), held, block, strict=True):
            for key, value in changed:
                if value is None:
                    storage.kill(key)
                    model.pop(key, None)
                else:
                    storage.put(key, value)
                    model[key] = value
        assert state.commit() == root_of(held[0], {ONE: held[1]}, version)
        proof = state.prove_read(state.root, held[0])
        assert dict(proof.verify(state.root, held[0], strict=True).values) == held[0]
    assert [(key, value) for key, value in state.child(ONE).iter_prefix(b"")] == sorted(held[1].items())


@given(pairs, pairs, st.lists(st.tuples(changes, changes), max_size=3), state_versions)
def test_a_state_that_begins_again_is_one_built_anew(
    top: Pairs, child: Pairs, blocks: list[tuple[Changes, Changes]], version: StateVersion
) -> None:
    genesis = State(top, {ONE: child}, state_version=version, window=1, engine="plain")
    before = genesis.root, genesis.snapshot(), genesis.db.references()
    anew = State(top, {ONE: child}, state_version=version, window=2, engine="plain")
    states = [genesis.begun_again(window=2, engine="plain"), anew]
    for state in states:
        state.migrate(StateVersion.V1)
        for changed, of_child in blocks:
            state.write({None: dict(changed), ONE: dict(of_child)})
            state.commit()
    found = [(it.root, it.snapshot(), it.dump(), it.db.references()) for it in states]
    assert found[0] == found[1]
    assert (genesis.root, genesis.snapshot(), genesis.db.references()) == before


@given(pairs, changes, changes, changes)
def test_a_failed_transaction_leaves_nothing_of_itself(
    top: Pairs,
    before: Changes,
    within: Changes,
    deeper: Changes,
) -> None:
    state, calm = State(top), State(top)
    sorted_early = state.next_key(b"")
    for one in (state, calm):
        apply(one, before)
    kept = state.snapshot()

    def fail() -> None:
        with state.transaction():
            apply(state, within)
            with state.transaction():
                apply(state, deeper)
            raise Undone

    with pytest.raises(Undone):
        fail()
    assert state.snapshot() == kept
    assert list(state.iter_prefix(b"")) == sorted(kept[0].items())
    assert state.commit() == calm.commit()
    assert sorted_early == min((key for key in top if key > b""), default=None)


@given(pairs, changes, changes, changes)
def test_an_inner_failure_keeps_what_the_outer_transaction_wrote(
    top: Pairs,
    within: Changes,
    deeper: Changes,
    after: Changes,
) -> None:
    state, calm = State(top), State(top)
    with state.transaction():
        apply(state, within)
        with pytest.raises(Undone):
            undo(state, deeper)
        apply(state, after)
    apply(calm, within)
    apply(calm, after)
    assert state.snapshot() == calm.snapshot()
    assert state.commit() == calm.commit()


def undo(state: State, changed: Changes) -> None:
    """Apply changes inside a transaction that fails."""
    with state.transaction():
        apply(state, changed)
        raise Undone


def apply(state: State, changed: Changes) -> None:
    for key, value in changed:
        if value is None:
            state.child(ONE).kill(key)
            state.kill(key)
        else:
            state.child(ONE).put(key, value)
            state.put(key, value)


def test_a_rolled_back_write_is_not_written_at_the_seal() -> None:
    """Rewriting a large value migrates it from version 0 to 1; a write that was taken back does not."""
    old = State({b"key": bytes(40)}, state_version=StateVersion.V0)
    state = State({b"key": bytes(40)}, state_version=StateVersion.V0)
    state.migrate(StateVersion.V1)
    with pytest.raises(Undone):
        undo(state, [(b"key", bytes(40))])
    assert state.commit() == old.root
    state.put(b"key", bytes(40))
    assert state.commit() == State({b"key": bytes(40)}).root


def test_an_empty_child_trie_has_no_entry() -> None:
    state = State()
    assert state.commit() == EMPTY_ROOT
    state.child(ONE).put(b"key", b"value")
    state.commit()
    assert state.children() == [ONE]
    assert state.exists(ONE.prefixed_storage_key())
    state.child(ONE).kill(b"key")
    assert state.commit() == EMPTY_ROOT
    assert state.children() == []
    assert state.snapshot() == ({}, {})


def test_sealed_states_can_be_proven_from_inside_the_window_and_no_longer() -> None:
    state = State(window=3)
    roots = [state.root]
    for number in range(1, 6):
        state.put(b"number", bytes([number]))
        state.child(ONE).put(b"key", bytes([number]) * 40)
        roots.append(state.commit())
    for number in (3, 4, 5):
        top = state.prove_read(roots[number], [b"number"]).verify(roots[number], [b"number"], strict=True)
        assert top[b"number"] == bytes([number])
        child = state.prove_child_read(roots[number], ONE, [b"key"]).verify_child(roots[number], ONE, [b"key"])
        assert child[b"key"] == bytes([number]) * 40
    for root in (*roots[:3], bytes(32)):
        with pytest.raises(StateDiscarded):
            state.prove_read(root, [b"number"])
        with pytest.raises(StateDiscarded):
            state.prove_child_read(root, ONE, [b"key"])


@given(st.lists(changes, min_size=1, max_size=6), st.integers(1, 3))
def test_what_leaves_the_window_leaves_the_database(blocks: list[Changes], window: int) -> None:
    state = State(window=window)
    for changed in blocks:
        apply(state, changed)
        state.commit()
    for _ in range(window):
        state.commit()
    alone = State(*rebuilt(state))
    assert alone.root == state.root
    assert state.db.references() == alone.db.references()


def rebuilt(state: State) -> tuple[Pairs, dict[ChildInfo, Pairs]]:
    """Return what a state holds in the form that a new one is built from."""
    top, children = state.snapshot()
    own = {key: value for key, value in top.items() if not key.startswith(CHILD_STORAGE_PREFIX)}
    return own, {ChildInfo(name): held for name, held in children.items()}


def test_a_state_that_comes_back_stays_in_the_window_as_long_as_its_last_seal() -> None:
    state = State(window=2)
    state.put(b"key", b"a")
    root = state.commit()
    state.put(b"key", b"b")
    state.commit()
    state.put(b"key", b"a")
    assert state.commit() == root
    assert state.prove_read(root, [b"key"]).verify(root, [b"key"])[b"key"] == b"a"
    assert isinstance(state.prove_read(root, []), StorageProof)


@given(pairs, st.binary(max_size=3))
def test_prefixes_select_what_starts_with_them(top: Pairs, prefix: bytes) -> None:
    state = State(top)
    under = sorted(key for key in top if key.startswith(prefix))
    assert [key for key, _ in state.iter_prefix(prefix)] == under
    assert state.count_prefix(prefix) == len(under)
    for start in (b"", prefix, *under):
        after = [key for key in under if key > start] if start >= prefix else under
        assert [key for key, _ in state.iter_prefix(prefix, start_after=start)] == after
    assert state.top.clear_prefix(prefix) == len(under)
    assert set(state.snapshot()[0]) == set(top) - set(under)


@pytest.mark.parametrize("prefix", [b"\xff", b"\xff\xff", b"a\xff"])
def test_the_last_prefixes_end_where_the_keys_end(prefix: bytes) -> None:
    state = State({b"a": b"", b"a\xff": b"", b"a\xff\xff": b"", b"b": b"", b"\xff": b"", b"\xff\xff\x01": b""})
    assert state.count_prefix(prefix) == len(list(state.iter_prefix(prefix)))


def test_an_iteration_goes_on_when_keys_vanish_and_appear() -> None:
    state = State({bytes([number]): b"" for number in range(0, 20, 2)})
    seen = []
    for key, _ in state.iter_prefix(b""):
        seen.append(key[0])
        if key[0] == 4:
            for number in (4, 6, 8):
                state.kill(bytes([number]))
            state.put(bytes([9]), b"")
    assert seen == [0, 2, 4, 9, 10, 12, 14, 16, 18]


def test_the_entries_of_child_tries_cannot_be_written_by_hand() -> None:
    state = State()
    entry = ONE.prefixed_storage_key()
    for attempt in (
        lambda: state.put(entry, bytes(32)),
        lambda: state.kill(entry),
        lambda: state.clear_prefix(b":child"),
        lambda: state.clear_prefix(entry + b"x"),
        lambda: State({entry: bytes(32)}),
    ):
        with pytest.raises(ValueError, match="child"):
            attempt()


def test_slips_of_the_caller_are_told() -> None:
    with pytest.raises(ValueError, match="window"):
        State(window=0)
    state = State()
    with pytest.raises(ValueError, match="inside a transaction"), state.transaction():
        state.commit()


STEPS = ["put", "kill", "look", "fail", "clear"]


def go_and_come(state: State, key: bytes) -> None:
    """Remove and write keys in a transaction that fails."""
    with state.transaction():
        state.kill(key)
        state.put(key, b"w")
        state.kill(key[:1])
        raise Undone


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(100, 199).map(lambda number: bytes([number]))), max_size=60)
)
def test_the_order_of_keys_follows_every_change_whenever_it_is_looked_at(steps: list[tuple[str, bytes]]) -> None:
    twin = {bytes([number]): b"v" for number in range(100, 164)}
    state = State(twin)
    for step, key in steps:
        if step == "put":
            state.put(key, b"v")
            twin[key] = b"v"
        elif step == "kill":
            state.kill(key)
            twin.pop(key, None)
        elif step == "fail":
            with pytest.raises(Undone):
                go_and_come(state, key)
        elif step == "clear":
            assert state.clear_prefix(key) == (twin.pop(key, None) is not None)
        else:
            assert [found for found, _ in state.iter_prefix(b"")] == sorted(twin)
    assert state.count_prefix(b"") == len(twin)
    assert [key for key, _ in state.iter_prefix(b"")] == sorted(twin)


def test_a_key_that_goes_and_comes_again_is_in_order_once() -> None:
    state = State({bytes([number]): b"v" for number in range(20)})
    assert state.count_prefix(b"") == 20
    state.kill(b"\x03")
    state.put(b"\x03", b"w")
    assert state.count_prefix(b"") == 20
    state.kill(b"\x03")
    assert len(list(state.iter_prefix(b""))) == 19
