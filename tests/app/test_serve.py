"""``relaycast serve`` and ``rc.serve``: the verb as a process, the chains of a preset behind it, refusals."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import relaycast as rc
from app.browser import cut_on_paper, visited
from app.page import parsed
from command_line import Command, Refused
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.network import living
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_node.timeline import TICKS_OF_A_CHECKPOINT
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.well_known_keys import para_head
from relaycast_trie import StorageProof, blake2_256
from relaycast_xcm import ParaId


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle") as chains:
        chains.new_block(6)
        yield chains


def post(url: str, method: str, *params: object) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urlopen(Request(url, body, {"content-type": "application/json"}), timeout=60) as response:
        return json.load(response)["result"]


def test_a_preset_is_served_with_all_its_chains(oracle: ServedNetwork) -> None:
    assert oracle.parachains == [2000, 3000, 3001]
    assert post(oracle.http_url, "system_chain") == "oracle relay"
    for para_id in oracle.parachains:
        url = oracle.parachain_url(para_id).replace("ws://", "http://")
        assert post(url, "system_chain") == f"oracle parachain {para_id}"
    with pytest.raises(ValueError, match="there is no parachain 9, only 2000, 3000, 3001"):
        oracle.parachain_url(9)


def test_what_a_publisher_wrote_is_read_and_proven_through_its_child_trie(oracle: ServedNetwork) -> None:
    head = oracle.call("chain_getBlockHash")
    root = bytes.fromhex(oracle.call("chain_getHeader", head)["stateRoot"][2:])
    info = derive_child_info(2000)
    name = "0x" + info.prefixed_storage_key().hex()
    keys = oracle.call("childstate_getKeysPaged", name, "0x", 3, None, head)
    assert len(keys) == 3
    proof = oracle.call("state_getChildReadProof", name, keys, head)["proof"]
    verified = StorageProof(bytes.fromhex(node[2:]) for node in proof).verify_child(
        root, info, [bytes.fromhex(key[2:]) for key in keys]
    )
    for key in keys:
        stored = oracle.call("childstate_getStorage", name, key, head)
        assert "0x" + verified[bytes.fromhex(key[2:])].hex() == stored  # type: ignore[union-attr]


def test_heads_of_parachains_are_those_that_the_relay_chain_holds(oracle: ServedNetwork) -> None:
    stored = oracle.call("state_getStorage", "0x" + para_head(ParaId(3000)).hex())
    head = bytes.fromhex(stored[2:])[2:]  # behind its length
    header = oracle.call("chain_getHeader", "0x" + blake2_256(head).hex(), para_id=3000)
    assert header is not None
    assert int(header["number"], 16) == 5


def test_the_proof_of_a_block_comes_full_and_pruned_and_explained(oracle: ServedNetwork) -> None:
    found = oracle.call("dev_proof", None, 3000)
    assert found["block"]["number"] == 6
    assert set(found["pruned"]["nodes"]) <= set(found["full"]["nodes"])
    relay_root = oracle.call("chain_getHeader", found["relayParent"]["hash"])["stateRoot"]
    assert found["relayParent"]["stateRoot"] == relay_root
    nodes = [node for trie in found["tries"] for node in trie["nodes"] if node["inProof"] and not node["countedBefore"]]
    assert sum(node["bytes"] for node in nodes if node["hash"]) == found["pruned"]["bytes"]
    assert {trie["publisher"] for trie in found["tries"]} == {None, 2000}
    assert found == oracle.call("dev_proof", found["block"]["hash"], para_id=3000)
    with pytest.raises(RpcError, match="paraId: got null, expected the id of a parachain here: 2000, 3000, 3001"):
        oracle.call("dev_proof")


def test_publishers_and_readers_are_listed(oracle: ServedNetwork) -> None:
    (publisher,) = oracle.call("dev_publishers")
    assert (publisher["paraId"], publisher["keys"]) == (2000, 50)
    assert publisher["childRoot"] == oracle.call("state_getStorage", publisher["childStorageKey"])
    readers = oracle.call("dev_readers")
    assert [reader["paraId"] for reader in readers] == [3000, 3001]
    assert all(reader["prunedProofBytes"] <= reader["fullProofBytes"] for reader in readers)


def test_a_developer_publishes_and_writes_storage() -> None:
    with rc.serve("oracle") as chains:
        sent = chains.call("dev_publish", 2000, "my/key", "0x0102", 50)
        assert sent == {"publisher": 2000, "key": "0x" + blake2_256(b"my/key").hex(), "valueBytes": 2, "ttl": 50}
        assert chains.call("dev_setStorage", {"0x1234": "0xabcd"}) == 1
        assert chains.call("state_getStorage", "0x1234") is None
        chains.new_block(2)
        assert chains.call("state_getStorage", "0x1234") == "0xabcd"
        name = "0x" + derive_child_info(2000).prefixed_storage_key().hex()
        assert chains.call("childstate_getStorage", name, sent["key"]) == "0x080102" + "32000000" + "02000000"
        with pytest.raises(RpcError, match="publisher: got 9, expected the id of a parachain here"):
            chains.call("dev_publish", 9, "my/key", "0x")
        with pytest.raises(RpcError, match="names a child trie"):
            chains.call("dev_setStorage", [[name, "0x01"]])


def test_the_live_page_begins_with_all_that_happened(oracle: ServedNetwork) -> None:
    with urlopen(f"{oracle.http_url}/live", timeout=60) as stream:
        assert stream.readline() == b"event: snapshot\n"
        snapshot = json.loads(stream.readline().removeprefix(b"data: "))
    assert snapshot["blockTime"] == "manual"
    assert {block["paraId"] for block in snapshot["blocks"]} == {None, 2000, 3000, 3001}
    assert {row["publisher"] for row in snapshot["publications"]} == {2000}
    assert any(row["key"].startswith("price/") for row in snapshot["publications"])
    newest = {row["reader"]: row for row in snapshot["proofs"]}
    for reader in oracle.call("dev_readers"):
        assert newest[reader["paraId"]]["pruned"] == reader["prunedProofBytes"]


def test_the_page_runs_in_a_browser_and_loads_nothing_from_elsewhere(oracle: ServedNetwork, tmp_path: Path) -> None:
    page = urlopen(Request(oracle.http_url, headers={"accept": "text/html"}), timeout=60).read().decode()
    parsed(page)
    assert "connect-src 'self'" in page
    assert cut_on_paper(page, tmp_path)[1].startswith("0 cut")
    shown, console = visited(oracle.http_url, tmp_path)
    assert console == []
    assert 'role="status">Blocks come as they are built.</p>' in shown
    number = oracle.call("chain_getHeader")["number"]
    assert f'<b id="relay">{int(number, 16)}</b>' in shown
    assert shown.count('class="strip"') == 2
    assert "price/" in shown


@pytest.mark.live("ring-roots")
def test_a_test_gets_a_network_of_its_own(live_network: ServedNetwork) -> None:
    assert live_network.new_block(2) == 2
    assert live_network.call("system_chain").startswith("ring-roots")
    assert live_network.url.startswith("ws://127.0.0.1:")


def test_what_cannot_be_served_is_a_value_error() -> None:
    for given, line in [
        ({"scenario": "orakle"}, "did you mean oracle"),
        ({"block_time": "soon"}, "--block-time: got 'soon', expected seconds or milliseconds"),
    ]:
        with pytest.raises(ValueError, match=line), rc.serve(**given):  # type: ignore[arg-type]
            pass
    with rc.serve("oracle") as chains:
        port = int(chains.url.rpartition(":")[2])
        with pytest.raises(ValueError, match=f"--port: got {port}, which is in use"), rc.serve("oracle", port=port):
            pass


TOKEN_LINES = "# who\na-token-of-some-length\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing"], "serve: got 'nothing', expected a scenario file, or the name of a preset"),
        (["--block-time", "0s"], "--block-time: got '0s', expected seconds or milliseconds from 10ms to 3600s"),
        (["--block-time", "fast"], "--block-time: got 'fast', expected seconds or milliseconds"),
        (["--port", "65536"], "--port: got 65536, expected a number from 0 (any free port) to 65535"),
        (["--port", "-1"], "--port: got -1, expected a number from 0 (any free port) to 65535"),
        (["--host", "0.0.0.0"], "--host: got 0.0.0.0, which others can reach, expected 127.0.0.1, or a --token-file"),
        (["--host", "example.org"], "--host: got example.org, which others can reach, expected 127.0.0.1"),
        (
            ["--token-file", "missing"],
            "--token-file missing: got no such file or directory, expected a file with tokens",
        ),
        (["--finality", "257"], "--finality: got 257, expected a number of blocks from 0 to 256"),
        (["--keep", "511"], "--keep: got '511', expected a number of blocks from 512 on, or all"),
        (["--keep", "some"], "--keep: got 'some', expected a number of blocks from 512 on, or all"),
        (["--data", ""], "--data: got an empty text, expected a folder"),
        (
            ["--face", "node", "--allow-sink", "a"],
            "--allow-sink: got --face node, expected cloudevents or icrc among the faces",
        ),
        (["--tls-cert", "x.pem"], "--tls-cert: got one of --tls-cert and --tls-key, expected both"),
    ],
)
def test_what_cannot_be_served_is_one_line(refused: Refused, arguments: list[str], line: str) -> None:
    scenario = [] if arguments[0] == "nothing" else ["oracle"]
    assert refused("serve", *scenario, *arguments).startswith(line)


@pytest.mark.parametrize("name", ["events", "deliveries", "subscriptions"])
def test_a_folder_with_something_else_in_it_is_one_line_and_left_as_it_is(
    refused: Refused, relaycast: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "data").write_text("mine")
    assert refused("serve", "oracle", "--data", "data") == "--data data: got a file, expected a folder"
    (tmp_path / "data").unlink()
    place = tmp_path / "data" / f"{name}.sqlite"
    place.mkdir(parents=True)
    line = refused("serve", "oracle", "--data", "data")
    assert line == f"--data data: data/{name}.sqlite: got a folder, expected a file of this gateway, or none"
    place.rmdir()
    with closing(sqlite3.connect(place)) as other:
        other.execute("CREATE TABLE mine (x)")
    before = place.read_bytes()
    ended = relaycast("serve", "oracle", "--data", "data", "--port", "0")
    assert ended.code == 2
    assert ended.err.startswith(f"relaycast: --data data: data/{name}.sqlite: got ")
    assert place.read_bytes() == before


@pytest.mark.parametrize(("finality", "behind"), [(None, 2), (0, 0), (5, 5)])
def test_finality_is_as_many_blocks_behind_as_asked(finality: int | None, behind: int) -> None:
    live = living("oracle", "manual", finality=finality).clock
    live.new_block(8)
    for chain in live.served():
        assert chain.best.number - chain.finalized.number == behind


@pytest.mark.parametrize(("keep", "kept"), [("", 4_096), ("512", 512), ("all", None)])
def test_as_many_blocks_are_kept_as_asked(keep: str, kept: int | None) -> None:
    assert {chain.kept_blocks for chain in living("oracle", "manual", keep=keep).clock.served()} == {kept}


def sizes(chain: ServedChain) -> list[int]:
    """Return how many blocks a chain keeps, and how many values of each trie."""
    tries = [chain._top, *chain._children.values()]
    return [len(chain._tree._blocks), *(sum(map(len, it._values.values())) for it in tries)]


def test_a_chain_that_lives_long_holds_no_more_than_its_window() -> None:
    live = living("config-sync", "manual").clock
    for chain in live.served():
        chain.kept_blocks = 40
    live.new_block(100)
    first = [sizes(chain) for chain in live.served()]
    live.new_block(250)  # the workload repeats itself every 25 blocks
    assert [sizes(chain) for chain in live.served()] == first
    assert len(live._timeline._by_relay_block) < 3 * TICKS_OF_A_CHECKPOINT


def test_a_port_in_use_is_one_line(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert refused("serve", "oracle", "--port", str(port)) == (
            f"--port: got {port}, which is in use, expected a free port, or 0 for any"
        )


@pytest.mark.parametrize(
    ("mode", "text", "line"),
    [
        (0o644, TOKEN_LINES, "--token-file tokens: got mode 0644, expected 0600: chmod 600 tokens"),
        (0o600, "# nothing\n\n", "--token-file tokens: got no token, expected a token on each line"),
        (0o600, "short\n", "--token-file tokens: token 1: got 5 characters, expected at least 16 printable"),
        (0o600, TOKEN_LINES, "--host: got 0.0.0.0, which others can reach, expected --tls-cert and --tls-key, or"),
    ],
)
def test_tokens_are_kept_from_others(refused: Refused, tmp_path: Path, mode: int, text: str, line: str) -> None:
    (tmp_path / "tokens").write_text(text)
    (tmp_path / "tokens").chmod(mode)
    answer = refused("serve", "oracle", "--host", "0.0.0.0", "--token-file", "tokens")
    assert answer.startswith(line)
    assert "a-token" not in answer


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_verb_lives_until_it_is_stopped(how: signal.Signals) -> None:
    command = [sys.executable, "-m", "relaycast", "serve", "oracle", "--port", "0", "--block-time", "100ms"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("ready"):
                break
        url = re.search(r"http://127\.0\.0\.1:\d+", "".join(lines))
        assert url is not None
        while int(post(url[0], "chain_getHeader")["number"], 16) < 3:
            time.sleep(0.1)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "stopped\n", "")
    assert lines[-1] == "ready: a relay chain and 3 parachains, a block every 100ms; Ctrl-C stops\n"
    assert all(": " in line for line in lines[:-1])
