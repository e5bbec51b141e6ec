"""Closed forms beside exact tries, exact networks and the presets: where they hold, and how close."""

import subprocess
import sys
from collections.abc import Callable
from random import Random
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

import relaycast as rc
from relaycast import predict
from relaycast.predict.block import prediction
from relaycast.predict.ground import GROUNDS, KUSAMA, MODELLED, Ground
from relaycast.predict.measured import measured_proofs
from relaycast.predict.trie import leaves_left_alone, leaves_split
from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import RelayChainTable
from relaycast.simulation.simulation import Simulation
from relaycast_ledger import BlockRecord
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_trie import Branch, Leaf, StateVersion
from relaycast_trie.hasher import blake2_256
from relaycast_trie.node_codec import decode_node
from relaycast_trie.plain.build import build_trie
from relaycast_trie.reference import prove
from shared_vectors import shared

FULL = 0.02
DELTA = 0.05

GRID = [
    # keys, subscribed, of them updated, updated elsewhere, bytes of the stored entry, tries
    (10, 1, 1, 0, 25, 300),
    (10, 5, 2, 0, 2_057, 200),
    (10, 10, 1, 0, 33, 150),
    (10, 10, 10, 0, 25, 50),
    (10, 4, 1, 3, 25, 300),
    (30, 10, 3, 0, 25, 100),
    (100, 1, 1, 0, 2_057, 100),
    (100, 10, 1, 0, 25, 100),
    (100, 20, 5, 40, 25, 50),
    (100, 50, 10, 0, 32, 30),
    (100, 100, 1, 0, 33, 30),
    (100, 100, 100, 0, 400, 10),
    (1_000, 1, 1, 0, 25, 20),
    (1_000, 100, 10, 0, 25, 20),
    (1_000, 100, 10, 90, 25, 10),
    (1_000, 100, 0, 300, 25, 10),
    (1_000, 100, 1, 0, 400, 20),
    (1_000, 1_000, 30, 0, 2_057, 5),
    (10_000, 100, 10, 0, 25, 5),
    (10_000, 1_000, 100, 0, 33, 2),
    (10_000, 10_000, 300, 0, 25, 2),
    (100_000, 1_000, 30, 0, 25, 1),
    pytest.param(100_000, 50_000, 3_000, 20_000, 25, 1, marks=pytest.mark.slow),
    pytest.param(100_000, 100_000, 100_000, 0, 25, 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("keys", "subscribed", "updated", "elsewhere", "entry", "tries"), GRID)
def test_formulas_hold_on_exact_tries(
    keys: int, subscribed: int, updated: int, elsewhere: int, entry: int, tries: int
) -> None:
    value = next(size for size in (entry - 9, entry - 10) if predict.entry_bytes(size) == entry)
    found = [
        measured_proofs(keys, subscribed, updated, value, elsewhere=elsewhere, seed=seed, engine="array")
        for seed in range(tries)
    ]
    full, delta = fmean(it.full_bytes for it in found), fmean(it.delta_bytes for it in found)
    expected = predict.delta_proof(keys, subscribed, updated, value, elsewhere=elsewhere)
    assert predict.full_proof(keys, subscribed, value).proof_bytes == pytest.approx(full, rel=FULL)
    assert expected.proof_bytes == pytest.approx(delta, rel=DELTA)


def test_what_is_measured_is_what_the_reference_proves() -> None:
    keys = [blake2_256(f"0/{index}".encode()) for index in range(40)]
    for engine in ("plain", "array"):
        found = measured_proofs(40, 7, 2, 100, elsewhere=3, engine=engine)
        assert found == measured_proofs(40, 7, 2, 100, elsewhere=3)
    pairs = {key: bytes([index]) * 110 for index, key in enumerate(keys)}
    size = sum(map(len, prove(pairs, keys[:7], state_version=StateVersion.V1)))
    assert found.full_bytes == size


@pytest.mark.parametrize(("keys", "value", "tries"), [(2, 16, 2_000), (40, 16, 200), (1_000, 23, 6), (1_000, 24, 6)])
def test_branches_and_leaves_have_the_bytes_that_the_formula_gives_them(keys: int, value: int, tries: int) -> None:
    leaves: list[int] = []
    branches: list[int] = []
    for seed in range(tries):
        nodes: dict[bytes, bytes] = {}
        entries = {
            blake2_256(f"{seed}/{index}".encode()): PublishedEntry(bytes(value), 0, index).encode()
            for index in range(keys)
        }
        build_trie(entries, nodes.__setitem__, state_version=StateVersion.V1)
        inside = [data for data in nodes.values() if data not in entries.values()]
        leaves += [len(data) for data in inside if isinstance(decode_node(data), Leaf)]
        branches += [len(data) for data in inside if isinstance(decode_node(data), Branch)]
    size = predict.full_proof(keys, keys, value)
    assert predict.leaf_bytes(keys, value)[0] == pytest.approx(fmean(leaves), abs=0.03)
    assert size.branches == pytest.approx(len(branches) / tries, rel=0.01)
    assert size.branch_bytes / size.branches == pytest.approx(fmean(branches), rel=0.01 if keys > 2 else 0.0002)


def test_the_only_key_is_a_leaf_with_its_whole_path() -> None:
    for value in (16, 23, 24, 2_048):
        assert predict.full_proof(1, 1, value).proof_bytes == measured_proofs(1, 1, 1, value).full_bytes


def test_one_byte_over_the_inline_limit_costs_what_the_hint_says() -> None:
    at, over = (measured_proofs(100, 100, 0, size).full_bytes for size in (23, 24))
    assert f"takes {(over - at) / 100:.0f} bytes more than a value of 23" in predict.inline_hint([16, 24])
    assert not predict.inline_hint([16, 23, 25])


@pytest.mark.parametrize("value", [0, 1, 63, 64, 16_383, 16_384])
def test_an_entry_has_the_bytes_that_are_stored(value: int) -> None:
    assert predict.entry_bytes(value) == len(PublishedEntry(bytes(value), 3, 7).encode())


@pytest.mark.parametrize(
    ("keys", "subscribed", "updated", "elsewhere", "value"),
    [(50, 50, 50, 0, 16), (50, 10, 10, 40, 16), (8, 8, 1, 0, 64), (100, 20, 5, 0, 40), (100, 100, 10, 0, 16)],
)
def test_upkeep_of_the_cache_is_what_networks_carry(
    keys: int, subscribed: int, updated: int, elsewhere: int, value: int
) -> None:
    blocks = [
        block
        for seed in range(4)
        for block in updating(
            keys, subscribed, [*range(updated), *range(subscribed, subscribed + elsewhere)], value, seed
        )
    ]
    upkeep = predict.cache_upkeep_bytes(keys, subscribed, updated, value, elsewhere=elsewhere)
    carried = [it.pov.own_bytes for it in blocks if it.pov is not None]
    assert upkeep + MODELLED.own_changed_bytes == pytest.approx(fmean(carried), rel=0.05)
    delta = predict.delta_proof(keys, subscribed, updated, value, elsewhere=elsewhere).proof_bytes
    assert delta == pytest.approx(
        fmean(it.proof_bytes - it.static_bytes for it in blocks) - MODELLED.top_bytes, rel=DELTA
    )


def updating(
    keys: int, subscribed: int, changing: list[int], value: int, seed: int, **options: Any
) -> list[BlockRecord]:
    """Return blocks of a reader in each of which the same keys have new values."""
    net = rc.Network(seed=seed)
    publisher = net.publisher(2000)
    names = [f"{seed}/{index}" for index in range(keys)]
    publisher.publish_many({name: name.encode().ljust(value)[:value] for name in names})
    net.subscriber(3000, keys=[publisher.feed(name) for name in names[:subscribed]], **options)
    net.run(blocks=6)
    blocks: list[BlockRecord] = []
    for block in range(5):
        publisher.publish_many({names[index]: f"{block}/{index}".encode().ljust(value)[:value] for index in changing})
        blocks += net.ledger.step()
    return blocks[2:]


def test_the_rate_that_fits_a_budget_lasts_and_a_higher_one_does_not() -> None:
    budget = 9_000
    fits = predict.updates_for_budget(budget, 60, 60, 16)
    assert 20 < fits < 50
    pov = budget * 100 // Remaining().percent + 1

    def complete(updated: int) -> list[bool]:
        return [
            it.complete
            for seed in range(4)
            for it in updating(60, 60, list(range(updated)), 16, seed, max_pov_bytes=pov)
        ]

    assert all(complete(round(0.85 * fits)))
    assert not all(complete(round(1.15 * fits)))


@pytest.mark.parametrize("ground", [MODELLED, KUSAMA])
def test_what_a_block_carries_anyway_is_what_the_presets_measure(ground: Ground) -> None:
    scenario = replace(load_preset("config-sync"), blocks=20)
    if ground is KUSAMA:
        scenario = replace(scenario, relaychain=RelayChainTable(genesis=str(shared("data/kusama-genesis.json.gz"))))
    run = Simulation.prepare(scenario).run()
    (reader,) = run.subscribers
    assert (reader.static_bytes.p50, reader.proof_bytes.p50, run.series[reader.para_id][-1].own_pov_bytes) == (
        ground.static_bytes,
        ground.proof_bytes,
        ground.own_bytes,
    )


def test_a_budget_holds_what_is_said_and_not_one_more() -> None:
    for budget in (0, 1, 67, 1_000, 50_000, 10**6):
        room = budget - MODELLED.top_bytes
        alone = predict.keys_for_budget(budget, 16)
        assert alone == 0 or predict.full_proof(alone, alone, 16).proof_bytes <= room
        assert predict.full_proof(alone + 1, alone + 1, 16).proof_bytes > room
        some = predict.keys_for_budget(budget, 16, keys=1_000)
        assert some == 0 or predict.full_proof(1_000, some, 16).proof_bytes <= room
        assert some == 1_000 or predict.full_proof(1_000, some + 1, 16).proof_bytes > room


@pytest.mark.parametrize(("keys", "value"), [(100, 16), (100, 384), (1_000, 16)])
def test_the_cache_pays_up_to_the_break_even_and_no_further(keys: int, value: int) -> None:
    most = predict.cache_break_even(keys, keys, value)
    assert 0 < most < keys
    assert prediction(keys, keys, value, updated=most).cache.pays
    assert not prediction(keys, keys, value, updated=most + 1).cache.pays


def test_proofs_grow_with_every_key_and_update() -> None:
    for keys in (2, 17, 300, 5_000):
        sizes = [predict.full_proof(keys, count, 16).structure_bytes for count in range(1, keys + 1, 1 + keys // 40)]
        assert sizes == sorted(sizes)
        few = 1 + keys // 3
        deltas = [predict.delta_proof(keys, few, count, 16).structure_bytes for count in range(few + 1)]
        assert deltas == sorted(deltas)
        assert deltas[0] == pytest.approx(0, abs=1e-9)
        assert deltas[-1] == pytest.approx(predict.full_proof(keys, few, 16).structure_bytes)


def test_large_numbers_stay_precise() -> None:
    one = predict.full_proof(predict.MAX_KEYS, 1, 16)
    assert 3_900 < one.proof_bytes < 3_930
    half = predict.MAX_KEYS // 2
    delta = predict.delta_proof(predict.MAX_KEYS, half, 1, 16)
    assert delta.structure_bytes == pytest.approx(one.structure_bytes, rel=1e-6)
    others = predict.delta_proof(predict.MAX_KEYS, half, 1, 16, elsewhere=1)
    assert 1.8 < others.structure_bytes / one.structure_bytes < 1.9


def test_sizes_take_turns() -> None:
    both, first = predict.full_proof(5, 5, [100, 10]), predict.leaf_bytes(5, 100)[1]
    assert (both.leaves, both.values, both.value_bytes) == (5, 3, 3 * first)


@pytest.mark.parametrize(
    ("call", "slip", "line"),
    [
        (lambda: predict.full_proof(0, 1, 16), ValueError, "keys is from 1 to 1,000,000,000, got 0"),
        (lambda: predict.full_proof(9, 10, 16), ValueError, "subscribed is from 1 to keys = 9, got 10"),
        (lambda: predict.delta_proof(9, 3, 4, 16), ValueError, "updated is from 0 to subscribed = 3, got 4"),
        (
            lambda: predict.delta_proof(9, 3, 1, 16, elsewhere=7),
            ValueError,
            "elsewhere is from 0 to keys - subscribed = 6, got 7",
        ),
        (lambda: predict.full_proof(9, 3, -1), ValueError, "value_bytes is from 0 to 1,048,576, got -1"),
        (lambda: predict.full_proof(9, 3, []), ValueError, "value_bytes is one size, or several"),
        (lambda: predict.full_proof(9.5, 3, 16), TypeError, "keys is a whole number, got 9.5 of type float"),  # type: ignore[arg-type]
        (lambda: predict.full_proof(9, True, 16), TypeError, "subscribed is a whole number, got True"),
        (lambda: predict.keys_for_budget(-1, 16), ValueError, "budget_bytes is from 0 to"),
    ],
)
def test_what_cannot_be_asked_says_why(call: Callable[[], object], slip: type[Exception], line: str) -> None:
    with pytest.raises(slip, match=line):
        call()


def test_a_prediction_loads_neither_numpy_nor_rich() -> None:
    code = (
        "import sys, relaycast\n"
        "relaycast.predict.full_proof(1_000, 100, 16)\n"
        "from relaycast.cli.command import execute\n"
        "execute(['predict', '--keys', '9', '--subscribed', '3', '--value', '1', '--json'])\n"
        "print([name for name in ('numba', 'numpy', 'pyarrow', 'rich', 'relaycast_collator') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_grounds_are_known_by_their_name() -> None:
    assert all(ground.name == name for name, ground in GROUNDS.items())


def paths(count: int, draw: Random) -> list[str]:
    return [f"{draw.getrandbits(48):012x}" for _ in range(count)]


def shared_nibbles(one: str, other: str) -> int:
    return next(index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])


@pytest.mark.parametrize(("keys", "moved", "tries"), [(12, 3, 120), (40, 30, 300), (50, 5, 120)])
def test_leaves_that_new_keys_part_and_that_removed_ones_leave_alone_are_counted(
    keys: int, moved: int, tries: int
) -> None:
    draw, split, alone = Random(keys), [], []
    for _ in range(tries):
        known, added = paths(keys, draw), paths(moved, draw)
        removed, kept = known[:moved], known[moved:]
        hangs = {key: max(shared_nibbles(key, other) for other in known if other != key) for key in kept}
        split.append(sum(any(shared_nibbles(key, new) > hangs[key] for new in added) for key in kept))
        found = 0
        for prefix in {key[:depth] for key in kept for depth in range(5)}:
            ways = {key[len(prefix)] for key in kept if key.startswith(prefix)}
            lost = {key[len(prefix)] for key in removed if key.startswith(prefix)}
            new = {key[len(prefix)] for key in added if key.startswith(prefix)}
            found += len(ways) == 1 and bool(lost) and not ways & (lost | new)
        alone.append(found)
    assert leaves_split(keys, keys - moved, moved) == pytest.approx(fmean(split), rel=0.1)
    assert leaves_left_alone(keys, moved, moved) == pytest.approx(fmean(alone), rel=0.15, abs=0.02)
