"""Real runtimes for users: in scenarios, runs, reports, the gate of proof sizes, and networks of tests."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import relaycast as rc
from command_line import Command, Refused
from real_runtime_files import CALLS, PANIC, READ, SCENARIO, WRITE, call, extrinsic, key, write_files
from relaycast.genesis.chain_spec import ChainSpec
from relaycast.refusal import BadInput
from relaycast.report.runtimes import cost_sentence, items_of, pallets_of, runtime_sentences
from relaycast.scenario.files import load_scenario
from relaycast.simulation.run_files import Finished, simulate
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.wasm_sources import loaded
from relaycast_pallets.frame.state import State
from relaycast_trie.engine import Engine
from shared_vectors import shared
from wasm.real_chains import top_of
from wasm.text_runtime import LOST, text_runtime


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of the small runtime, whose prices a modelled parachain reads."""
    folder = tmp_path_factory.mktemp("run")
    return simulate(load_scenario(write_files(folder)), out=folder / "out")


def test_what_a_real_runtime_publishes_reaches_a_modelled_reader(finished: Finished) -> None:
    run = finished.outcome
    (reader,), (runtime,) = run.subscribers, run.runtimes
    assert (reader.callbacks, runtime.published, runtime.upward_messages) == (4, 4, 4)
    assert (reader.latency_blocks.p50, reader.latency_blocks.max) == (2, 2)
    assert run.invariants.ok
    assert not run.refusals


def test_run_json_says_what_blocks_of_a_runtime_carry(finished: Finished) -> None:
    (runtime,) = json.loads((finished.folder / "run.json").read_text())["runtimes"]
    assert (runtime["para_id"], runtime["spec_name"], runtime["spec_version"]) == (3000, "text-runtime", 7)
    assert (runtime["blocks"], runtime["extrinsics"], runtime["left_out"]) == (8, 8 + 9, 1)
    assert set(runtime["own_proof_bytes"]) == {"p50", "p99", "max", "total"}
    assert sum(it["proof_bytes"] for it in runtime["by_item"]) == runtime["own_proof_bytes"]["total"] > 0
    assert {"System", "ParachainSystem", "trie"} <= {it["pallet"] for it in runtime["by_item"]}


def test_sentences_count_one_and_name_items_that_have_bytes(finished: Finished) -> None:
    (runtime,) = finished.outcome.runtimes
    (said,) = runtime_sentences(finished.outcome)
    assert "1 was left out" in said
    alone = [it for it in runtime.by_item if not it.proof_bytes] + runtime.by_item[:1]
    assert len(alone) > 1
    assert cost_sentence(replace(runtime, by_item=alone[::-1])).count("%") == 2


def test_tables_hold_the_same_bytes_block_by_block(finished: Finished) -> None:
    (runtime,) = finished.outcome.runtimes
    blocks = pq.read_table(finished.folder / "runtimes.parquet").to_pylist()
    items = pq.read_table(finished.folder / "items.parquet").to_pylist()
    assert sum(row["own_proof_bytes"] for row in blocks) == runtime.own_proof_bytes.total
    for row in blocks:
        assert sum(it["proof_bytes"] for it in items if it["block"] == row["block"]) == row["own_proof_bytes"]


def test_the_report_shows_pallets_and_items_that_add_up(finished: Finished) -> None:
    (runtime,) = finished.outcome.runtimes
    total = runtime.own_proof_bytes.total
    assert sum(row.proof_bytes for row in pallets_of(runtime)) == total
    assert sum(row.proof_bytes for row in items_of(runtime, most=3)) == total
    page = (finished.folder / "report.html").read_text()
    assert "Real runtimes" in page
    assert "ParachainSystem.shared" in page
    assert f"{total:,}</td>" in page


def test_the_same_files_give_the_same_bytes_on_either_engine(finished: Finished, tmp_path: Path) -> None:
    engines: tuple[Engine, ...] = ("plain", "array")
    for engine in engines:
        again = simulate(load_scenario(write_files(tmp_path)), out=tmp_path / engine, trie_engine=engine)
        for file in finished.folder.iterdir():
            assert (again.folder / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("file", ["small.wasm", "state.json", "calls.json"])
def test_the_run_id_covers_what_the_files_hold_and_not_where_they_lie(tmp_path: Path, file: str) -> None:
    def run_id(folder: Path) -> str:
        return Simulation.prepare(load_scenario(str(folder / "small.toml"))).run_id

    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        write_files(folder)
    assert run_id(here) == run_id(there)
    others: dict[str, bytes] = {
        "small.wasm": text_runtime() + b"\x00\x02\x01x",  # a custom section more
        "state.json": json.dumps({"top": {"0x01": "0x02"}}).encode(),
        "calls.json": json.dumps(CALLS[:-1]).encode(),
    }
    (there / file).write_bytes(others[file])
    assert run_id(here) != run_id(there)


def test_a_run_without_readers_has_a_summary_and_a_report(relaycast: Command, tmp_path: Path) -> None:
    alone = SCENARIO[: SCENARIO.rindex("[[parachains]]")]
    ended = relaycast("run", write_files(tmp_path, scenario=alone), "--blocks", "3")
    assert ended.code == 0
    assert "3000 text-runtime" in ended.out
    assert "ParachainSystem.shared" in ended.out
    assert "Fits: the fullest block, of 3000" in ended.out


def test_extrinsics_for_blocks_behind_the_end_wait(relaycast: Command, tmp_path: Path) -> None:
    file = write_files(tmp_path, calls=[call(2, WRITE), call(3, WRITE), call(9, WRITE), call(9, WRITE)])
    ended = relaycast("run", file, "--blocks", "3", "--json")
    assert ended.json["runtimes"][0]["waiting"] == 2
    assert "2 wait for a later block" in relaycast("run", file, "--blocks", "3").out


def test_a_trap_is_a_line_with_the_panic_and_fails_the_run(relaycast: Command, tmp_path: Path) -> None:
    file = write_files(tmp_path, calls=[call(2, PANIC)])
    ended = relaycast("run", file, "--blocks", "3", "--out", "there")
    assert ended.code == 1
    (line,) = (it for it in ended.out.splitlines() if it.startswith("the runtime failed: 3000: block on relay block 1"))
    assert line.endswith("the extrinsic asked for it; it logged: error text: the extrinsic asked for it")
    ended = relaycast("run", file, "--blocks", "3", "--json")
    assert ended.code == 1
    assert len(ended.json["refusals"]) == 1
    assert ended.json["runtimes"][0]["left_out"] == 1


def test_a_block_beyond_the_largest_pov_fails_the_run(relaycast: Command, tmp_path: Path) -> None:
    file = write_files(tmp_path)
    ended = relaycast("run", file, "--blocks", "3", "--set", "relaychain.max_pov_bytes=4096")
    assert ended.code == 1
    assert "Does not fit: the relay chain would refuse" in ended.out


@pytest.mark.parametrize(
    ("table", "place", "expected"),
    [
        ("publish = {keys = 1}", "parachains[0].publish", "none: what it does is up to its runtime"),
        ("subscribe = [{publisher = 2000}]", "parachains[0].subscribe", "none: what it does is up to its runtime"),
        ("max_trie_depth = 3", "parachains[0].max_trie_depth", "none: what it does is up to its runtime"),
        ("max_cached_bytes = 3", "parachains[0].max_cached_bytes", "none: what it does is up to its runtime"),
        ("max_total_keys = 3", "parachains[0].max_total_keys", "none: what it does is up to its runtime"),
    ],
)
def test_what_a_real_runtime_decides_is_refused_in_its_table(
    refused: Refused, tmp_path: Path, table: str, place: str, expected: str
) -> None:
    file = write_files(tmp_path, scenario=SCENARIO.replace('wasm = "small.wasm"', f'wasm = "small.wasm"\n{table}'))
    line = refused("run", file)
    assert place in line
    assert expected in line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('genesis = "state.json"\n', "", "parachains[0].wasm: got wasm without a genesis, expected genesis = "),
        ('wasm = "small.wasm"\n', "", "state.json at :code: got a state without a runtime, expected wasm = "),
        ('wasm = "small.wasm"', 'wasm = "calls.json"', "calls.json: got no runtime: "),
        ('wasm = "small.wasm"', 'wasm = "none.wasm"', "none.wasm: got no such file or directory, expected a file"),
        ('keys = ["price"]', "keys = 3", "subscribe[0].keys: got 3 of parachain 3000, whose runtime"),
        ('keys = ["price"]', 'keys = ["0x12"]', "subscribe[0].keys[0]: got '0x12', expected 0x and 64 hex digits"),
        ("blocks = 8", 'relaychain = {wasm = "small.wasm"}', "relaychain.wasm: got a runtime without a state"),
        ('wasm = "small.wasm"\ngenesis = "state.json"\n', "publish = {keys = 1}\n", "extrinsics without a genesis"),
    ],
)
def test_files_that_do_not_fit_are_one_line(refused: Refused, tmp_path: Path, old: str, new: str, said: str) -> None:
    assert SCENARIO.count(old) == 1
    assert said in refused("run", write_files(tmp_path, scenario=SCENARIO.replace(old, new)))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (3, "at [0]: got 3, expected {"),
        ({"block": 0, "extrinsic": "0x04ff"}, "at [0].block: got 0, expected a whole number from 1 to "),
        ({"block": 1, "extrinsic": "0x08ff"}, "expected an extrinsic with its length in front"),
        ({"block": 1, "extrinsic": "ff"}, "at [0].extrinsic: got 'ff', expected 0x"),
        ({"block": 1, "call": "0x04ff"}, "at [0]: got the members 'block', 'call', expected {"),
        ({"block": 1, "from": "0x00", "to": "Bob", "amount": 1}, "at [0].from: got '0x00', expected the name"),
        ({"block": 1, "from": "Alice", "to": "0x00", "amount": 1}, "at [0].to: got '0x00', expected 0x and 64 hex"),
        ({"block": 1, "from": "Alice", "to": "Bob", "amount": 0}, "at [0].amount: got 0, expected a whole number"),
        (
            {"block": 1, "from": "Alice", "to": "Bob", "amount": 1},
            "got transfers, but the runtime has no call Bal",
        ),
    ],
)
def test_extrinsics_that_cannot_be_meant_are_one_line(refused: Refused, tmp_path: Path, entry: Any, said: str) -> None:
    assert said in refused("run", write_files(tmp_path, calls=[entry]))


@pytest.mark.parametrize("verb", [("run", "--engine", "spark"), ("budget",), ("compare", "--policy", "cache=none")])
def test_verbs_that_take_modelled_parachains_alone_say_so(
    refused: Refused, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    line = refused(verb[0], write_files(tmp_path), *verb[1:])
    assert "got parachain 3000 with a real runtime, expected " in line


def test_without_its_extra_a_real_runtime_is_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch, refused: Refused, tmp_path: Path
) -> None:
    loaded.cache_clear()
    monkeypatch.setitem(sys.modules, "relaycast_wasm.runtime", None)
    line = refused("run", write_files(tmp_path))
    assert "expected the extra \"wasm\": pip install -e '.[wasm]' in the clone of relaycast" in line


def test_the_gate_names_the_storage_item_that_grew(relaycast: Command, tmp_path: Path) -> None:
    file = write_files(tmp_path)
    assert relaycast("pov", "snapshot", file, "--out", "kept.toml").code == 0
    assert relaycast("pov", "snapshot", "--check", "--out", "kept.toml").code == 0
    write_files(tmp_path, calls=[*CALLS, call(5, READ, key(30))])
    ended = relaycast("pov", "snapshot", "--check", "--out", "kept.toml")
    assert ended.code == 1
    assert "grew: small, runtime 3000" in ended.out
    assert "own_proof_bytes total" in ended.out
    (grown,) = (line for line in ended.out.splitlines() if key(30).hex()[:16] in line)
    assert int(grown.split()[0].replace(",", "")) > 0


def test_the_gate_tells_runtimes_that_only_one_side_has(relaycast: Command, tmp_path: Path) -> None:
    file = write_files(tmp_path)
    assert relaycast("pov", "snapshot", file, "--out", "kept.toml").code == 0
    write_files(tmp_path, scenario=SCENARIO.replace("3000", "3001"))
    ended = relaycast("pov", "snapshot", "--check", "--out", "kept.toml")
    assert ended.code == 1
    assert "small: runtime 3000 is in the kept snapshot, but not measured" in ended.out
    assert "small: runtime 3001 is not in the kept snapshot" in ended.out


def test_a_network_of_a_test_takes_a_real_runtime() -> None:
    net = rc.Network(seed=7)
    chain = net.parachain(3000, wasm=text_runtime(), genesis=ChainSpec("small", {key(1): b"one"}, {}))
    assert chain.storage(key(1)) == b"one"
    chain.submit(extrinsic(WRITE, key(2) + b"two"))
    chain.submit(f"0x{extrinsic(WRITE, key(3) + b'three').hex()}")
    run = net.run(blocks=2)
    assert chain.storage(f"0x{key(2).hex()}") == b"two"
    assert (chain.head.number, len(chain.blocks)) == (2, 2)
    assert len(chain.blocks[0].extrinsics) == 3
    assert chain.call("Core_version").startswith(b"\x30text-runtime")
    assert chain.storage(LOST) is None
    assert run.runtimes[3000].own_proof_bytes.total == sum(it.own_proof.proof_bytes for it in chain.blocks)
    assert (run.panics, run.oversize_blocks) == ([], 0)
    assert repr(chain) == "<RealRuntime 3000 of text-runtime 7 at #2>"


def test_a_trap_is_a_panic_of_the_run_of_a_network() -> None:
    net = rc.Network(seed=7)
    chain = net.parachain(3000, wasm=text_runtime(), genesis=ChainSpec("small", {key(1): b"one"}, {}))
    chain.submit(extrinsic(PANIC))
    (panic,) = net.run(blocks=1).panics
    assert "the extrinsic asked for it" in panic


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda net: net.parachain(3000, genesis=3), "a genesis is a ChainSpec or the file of one, got 3 of type int"),
        (lambda net: net.parachain(3000, genesis="g", max_pov_bytes="1"), "max_pov_bytes is a whole number"),
        (lambda net: net.parachain("3000", genesis="g"), "a parachain id is a whole number"),
    ],
)
def test_wrong_arguments_leave_the_network_as_it_was(
    wrong: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").write_text(json.dumps({"top": {"0x3a636f6465": f"0x{text_runtime().hex()}"}}))
    net = rc.Network(seed=7)
    with pytest.raises(TypeError, match=said):
        wrong(net)
    assert not net.chains.wasm_parachains


def test_a_genesis_without_a_runtime_is_refused_by_a_network() -> None:
    with pytest.raises(BadInput, match="a state without a runtime"):
        rc.Network().parachain(3000, genesis=ChainSpec("bare", {key(1): b"one"}, {}))


def test_a_state_of_the_genesis_has_the_code_and_the_version_of_the_runtime(tmp_path: Path) -> None:
    simulation = Simulation.prepare(load_scenario(write_files(tmp_path)))
    parachain = simulation.wasm_workloads[3000].parachain
    expected = State({b":code": text_runtime(), **{key(number): bytes(40) for number in range(40)}})
    assert parachain.head.state_root == expected.root


@pytest.mark.slow
def test_a_relay_chain_runs_by_its_own_runtime_with_parachains_beside_it(relaycast: Command, tmp_path: Path) -> None:
    genesis = shared("data/westend-genesis.json.gz")
    spec = json.loads(gzip.decompress(genesis.read_bytes()))
    (tmp_path / "relay.wasm").write_bytes(bytes.fromhex(spec["genesis"]["raw"]["top"]["0x3a636f6465"][2:]))
    relay = f'[relaychain]\ngenesis = "{genesis}"\nwasm = "relay.wasm"\n[[parachains]]'
    file = write_files(tmp_path, scenario=SCENARIO.replace("[[parachains]]", relay, 1))
    ended = relaycast("run", file, "--blocks", "6", "--json")
    assert ended.code == 0
    assert ended.json["relaychain"]["runtime"] == "westend 1"
    assert ended.json["subscribers"][0]["callbacks"] == 4
    assert ended.json["invariants"]["ok"]


@pytest.mark.slow
def test_asset_hub_takes_signed_transfers_and_gives_the_same_bytes_each_time(tmp_path: Path) -> None:
    top = {f"0x{name.hex()}": f"0x{value.hex()}" for name, value in top_of("asset-hub").items()}
    (tmp_path / "hub.json").write_text(json.dumps({"top": top}))
    transfers = [{"block": block, "from": "Alice", "to": "Bob", "amount": 10**9} for block in range(2, 8)]
    (tmp_path / "transfers.json").write_text(json.dumps(transfers))
    (tmp_path / "hub.toml").write_text(
        'blocks = 10\n[[parachains]]\nid = 1000\ngenesis = "hub.json"\nextrinsics = "transfers.json"\n'
    )
    runs = [simulate(load_scenario(str(tmp_path / "hub.toml")), out=tmp_path / name) for name in ("one", "two")]
    (runtime,) = runs[0].outcome.runtimes
    assert (runtime.spec_name, runtime.blocks, runtime.refused_blocks) == ("statemine", 5, 0)
    assert (runtime.extrinsics, runtime.failed_extrinsics, runtime.left_out) == (5 * 2 + 6, 0, 0)
    assert {"System.Account", "System.Events"} <= {it.name for it in runtime.by_item}
    for file in runs[0].folder.iterdir():
        assert (runs[1].folder / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.slow
def test_asset_hub_takes_messages_by_the_hash_chains_of_their_queues(tmp_path: Path) -> None:
    top = {f"0x{name.hex()}": f"0x{value.hex()}" for name, value in top_of("asset-hub").items()}
    (tmp_path / "hub.json").write_text(json.dumps({"top": top}))
    messages = "{ downward = 3_000, horizontal = 5_000, senders = [2000, 2001] }"
    (tmp_path / "hub.toml").write_text(
        'blocks = 12\n[[parachains]]\nid = 1000\ngenesis = "hub.json"\nrelay_blocks_per_block = 2\n'
        f"messages = {messages}\n"
    )
    run = simulate(load_scenario(str(tmp_path / "hub.toml")), out=tmp_path / "out")
    (runtime,) = run.outcome.runtimes
    assert (runtime.blocks, runtime.refused_blocks) == (6, 0)
    assert runtime.pov_bytes.max > 2 * 8_000  # of two relay blocks each, in full
    assert "ParachainSystem.LastHrmpMqcHeads" in {it.name for it in runtime.by_item}
