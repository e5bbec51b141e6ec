"""Forks by witness: chains that start from a part of another chain's state build the blocks that the whole gives."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

import relaycast as rc
from command_line import Command, Refused
from long_hauls import soak
from node.chains import submit
from relaycast.genesis.witness_keys import account_keys, wanted_by
from relaycast.scenario.files import load_named
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast.simulation.simulation import Simulation
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.extrinsic.accounts import dev_account
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_node.rpc.storage_queries import TYPES, StorageQuery, StorageView
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import storage_prefix
from relaycast_trie import CHILD_STORAGE_PREFIX, MissingNode, blake2_256
from shared_vectors import SHARED
from witness_scenes import PARACHAINS, fetched, kept, twins

KUSAMA = SHARED / "data" / "kusama-genesis.json.gz"


def lived(scenario: str, blocks: int) -> ChainClock:
    """Return the chains of a scenario after so many blocks."""
    live = living(scenario, "manual").clock
    live.new_block(blocks)
    return live


@pytest.fixture(scope="module")
def live() -> ChainClock:
    return lived("oracle", 6)


@pytest.fixture(scope="module")
def fork_file(live: ChainClock, tmp_path_factory: pytest.TempPathFactory) -> str:
    return kept(fetched(live), tmp_path_factory.mktemp("fork"))


def same_blocks(fork: rc.Network, whole: rc.Network, *, seed: int, blocks: int) -> None:
    """Let both networks do the same at random, and compare what they build and prove."""
    random = Random(seed)
    networks = fork, whole
    feeds = [[net.publisher(2000).feed(f"price/{index}") for index in range(6)] for net in networks]
    readers = [net.subscriber(3000, keys=wanted) for net, wanted in zip(networks, feeds, strict=True)]
    for _ in range(blocks):
        values = {f"price/{random.randrange(6)}": random.randbytes(random.choice((4, 40, 90))) for _ in range(2)}
        ttl = random.choice((0, 1, 3))
        leaves = random.random() < 0.1
        for net in networks:
            net.publisher(2000).publish_many(values, ttl=ttl)
            if leaves:
                net.chains.deregister_publisher(2000)
            net.run(blocks=1)
        heads = [net.chains.relay_chain.head for net in networks]
        assert heads[0].header == heads[1].header
        assert heads[0].events == heads[1].events
        name, keys = b"pubsub\xd0\x07\x00\x00", [feed.key for feed in feeds[0]]
        proofs = [net.chains.relay_chain.prove_child_read(net.chains.relay_chain.head, name, keys) for net in networks]
        assert proofs[0] == proofs[1]
    assert [readers[0].get(feed) for feed in feeds[0]] == [readers[1].get(feed) for feed in feeds[1]]


def test_a_fork_builds_the_blocks_of_the_whole_chain(live: ChainClock, fork_file: str) -> None:
    same_blocks(*twins(live, fork_file), seed=1, blocks=12)


@soak(10)
def test_forks_build_the_blocks_of_whole_chains(soak_round: int, tmp_path: Path) -> None:
    for seed in range(5 * soak_round, 5 * soak_round + 5):
        chain = lived("oracle", 1 + seed % 9)
        same_blocks(*twins(chain, kept(fetched(chain), tmp_path)), seed=seed, blocks=20)


@pytest.fixture(scope="module")
def on_kusama(tmp_path_factory: pytest.TempPathFactory) -> ChainClock:
    if not KUSAMA.exists():
        pytest.skip(f"{KUSAMA.name} is not beside this checkout")
    scenario = tmp_path_factory.mktemp("kusama") / "kusama.toml"
    scenario.write_text(f'extends = "oracle"\n[relaychain]\ngenesis = "{KUSAMA}"\n')
    return lived(str(scenario), 4)


def test_a_fork_of_kusama_builds_the_blocks_of_the_whole_chain(on_kusama: ChainClock, tmp_path: Path) -> None:
    found = fetched(on_kusama)
    assert len(found.top.gaps.nodes) > 20
    assert not found.top.gaps.lone
    same_blocks(*twins(on_kusama, kept(found, tmp_path)), seed=2, blocks=8)


@pytest.fixture(scope="module")
def fork(fork_file: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNetwork]:
    scenario = tmp_path_factory.mktemp("served") / "fork.toml"
    scenario.write_text(f'extends = "oracle"\n[relaychain]\ngenesis = "{fork_file}"\n')
    with serving(living(str(scenario), "manual")) as chains:
        chains.new_block(3)
        yield chains


ACCOUNTS = storage_prefix("System", "Account")
FERDIE = dev_account("Ferdie").account
NOBODY = account_keys(b"nobody".ljust(32, b"-"))[0]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("state_getStorage", [NOBODY]),
        ("state_getStorageSize", [NOBODY]),
        ("state_getStorageHash", [NOBODY]),
        ("state_getKeys", [b""]),
        ("state_getKeysPaged", [b"", 1000]),
        ("state_getPairs", [b""]),
        ("state_queryStorageAt", [[NOBODY]]),
        ("state_getReadProof", [[NOBODY]]),
        ("childstate_getKeys", [CHILD_STORAGE_PREFIX + b"elsewhere17", b""]),
        ("childstate_getStorage", [CHILD_STORAGE_PREFIX + b"elsewhere17", b"k"]),
        ("state_getChildReadProof", [CHILD_STORAGE_PREFIX + b"elsewhere17", [b"k"]]),
        ("system_accountNextIndex", ["0x" + (b"nobody".ljust(32, b"-")).hex()]),
    ],
)
def test_a_question_over_a_gap_is_an_error_by_name(wide_fork: ServedNetwork, method: str, params: list[object]) -> None:
    with pytest.raises(RpcError, match=r"MissingNode: node 0x[0-9a-f]{64} is missing at nibble path '[0-9a-f]*'"):
        wide_fork.call(method, *_hexed(params))


def _hexed(value: object) -> list[object]:
    assert isinstance(value, list)
    return [f"0x{it.hex()}" if isinstance(it, bytes) else _hexed(it) if isinstance(it, list) else it for it in value]


@pytest.fixture(scope="module")
def wide_fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNetwork]:
    """A fork of a chain with many keys, most of which the witness does not show."""
    folder = tmp_path_factory.mktemp("wide")
    pairs = {f"0x{blake2_256(b'%d' % number).hex()}": f"0x{number:08x}" for number in range(3_000)}
    pairs |= {f"0x{(ACCOUNTS + blake2_256(b'%d' % number)).hex()}": "0x00" for number in range(3_000)}
    children = {f"0x{(b'elsewhere%d' % number).hex()}": [["0x01", "0x02"]] for number in range(300)}
    (folder / "state.json").write_text(json.dumps({"top": pairs, "childrenDefault": children}))
    (folder / "whole.toml").write_text('extends = "oracle"\n[relaychain]\ngenesis = "state.json"\n')
    chain = lived(str(folder / "whole.toml"), 2)
    kept(fetched(chain), folder)
    (folder / "fork.toml").write_text('extends = "oracle"\n[relaychain]\ngenesis = "fork.witness.json.gz"\n')
    with serving(living(str(folder / "fork.toml"), "manual")) as chains:
        chains.new_block(3)
        yield chains


def test_the_new_interface_tells_a_gap_as_an_error_of_the_operation(wide_fork: ServedNetwork) -> None:
    relay = wide_fork._server.clock.relay
    state = relay.state_at(relay.best.hash)
    view = StorageView(relay, relay.best.hash)
    for kind in TYPES:
        with pytest.raises(MissingNode):
            list(view.items([StorageQuery(NOBODY, kind)]))
    assert state.get(account_keys(FERDIE)[0])


def test_a_write_beside_a_gap_is_refused_by_name_and_changes_nothing(wide_fork: ServedNetwork) -> None:
    state = wide_fork._server.clock.chains.relay_chain.state
    before = state.snapshot()
    known = f"0x{account_keys(FERDIE)[0].hex()}"
    account = wide_fork.call("state_getStorage", known)
    with pytest.raises(RpcError, match="MissingNode"):
        wide_fork.call("dev_setStorage", [[known, account[:-2] + "01"], [f"0x{NOBODY.hex()}", account]])
    assert state.snapshot() == before
    wide_fork.new_block()


def test_a_fork_goes_back_to_a_snapshot(fork: ServedNetwork) -> None:
    number = fork.call("dev_snapshot")
    head = fork.call("chain_getBlockHash")
    fork.new_block(3)
    fork.call("dev_revert", number)
    assert fork.call("chain_getBlockHash") == head
    fork.new_block(2)


def test_verbs_take_a_witness_as_genesis(fork_file: str, relaycast: Command, tmp_path: Path) -> None:
    (tmp_path / "fork.toml").write_text(f'extends = "oracle"\nblocks = 3\n[relaychain]\ngenesis = "{fork_file}"\n')
    run = relaycast("run", "fork.toml", "--blocks", "4", "--trie-engine", "array", "--json").json
    assert run["invariants"]["ok"]
    assert run["relaychain"]["genesis"] == "oracle relay at block 6 (a witness, on plain tries)"
    assert "on plain tries" in relaycast("run", "oracle", "--genesis", fork_file, "--blocks", "2").out
    assert relaycast("compare", "fork.toml", "--blocks", "3", "--policy", "cache=none").code == 0
    assert relaycast("pov", "snapshot", "fork.toml").code == 0
    assert relaycast("import", "state", fork_file, "--json").json["state_root"] == run["relaychain"]["genesis_root"]


def test_a_witness_for_other_parachains_is_refused_before_anything_runs(
    live: ChainClock, tmp_path: Path, refused: Refused
) -> None:
    file = kept(fetched(live, wanted_by([2000])), tmp_path)
    line = refused("run", "oracle", "--genesis", file)
    assert "a witness without what they need: node 0x" in line
    assert "relaycast import rpc takes the scenario with --scenario" in line
    net = rc.Network(genesis=file)
    before = repr(net)
    with pytest.raises(ValueError, match="the witness does not show what parachain 3000 needs"):
        net.subscriber(3000, keys=[])
    assert repr(net) == before


def test_what_needs_a_whole_state_refuses_a_witness(fork_file: str, refused: Refused, tmp_path: Path) -> None:
    assert "a whole state" in refused(
        "prove", fork_file, "--count", "1", "--keys", "1", "--out", str(tmp_path / "p.parquet")
    )
    with pytest.raises(ValueError, match="cannot be migrated"):
        rc.Network(genesis=fork_file, state_version=0)
    with pytest.raises(ValueError, match="a real runtime needs a whole state"):
        rc.Network().parachain(2000, genesis=fork_file)
    assert "real runtimes read what no witness shows" in refused(
        "run", "oracle", "--genesis", fork_file, "--set", "relaychain.wasm=r.wasm"
    )


def test_a_fork_keeps_everything_of_its_parachains_in_sight(live: ChainClock) -> None:
    found = fetched(live)
    assert [name for name, trie in found.children.items() if not trie.gaps] == [b"pubsub\xd0\x07\x00\x00"]
    assert PARACHAINS[0] == 2000
    assert isinstance(live.chains.relay_chain.state, State)


def test_a_transfer_into_a_gap_is_dropped_and_the_chain_goes_on(wide_fork: ServedNetwork) -> None:
    relay = wide_fork._server.clock.relay
    assert isinstance(relay, ServedChain)
    alice, bob = dev_account("Alice"), dev_account("Bob")
    nonce = relay.pool.next_nonce(alice.account)
    for receiver in (b"nobody".ljust(32, b"-"), bob.account):
        submit(relay, alice, "Balances", "transfer_allow_death", dest=("Id", receiver), value=10**10, nonce=nonce)
        wide_fork.new_block()
    assert relay.pool.next_nonce(alice.account) == nonce + 1, "the second took the place of the first"
    assert not relay.pool.pending()


def test_a_fork_goes_on_from_a_checkpoint_without_its_files(fork_file: str) -> None:
    scenario = load_named("oracle", "run")
    scenario = replace(scenario, relaychain=replace(scenario.relaychain, genesis=fork_file))
    first = Simulation.prepare(scenario)
    blocks = first.blocks(last=6)
    for _ in range(3):
        next(blocks)
    second = Simulation.prepare(scenario, sources=first.sources.without_files({2000}))
    second.chains.load(first.chains.dump())
    second.load(first.dump())
    later = second.blocks(last=6)
    for _ in range(3):
        next(blocks)
        next(later)
    assert second.chains.relay_chain.head.header == first.chains.relay_chain.head.header
