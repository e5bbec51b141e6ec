"""``serve --data DIR``: chains, pools and events go on after a stop, and after a kill at any moment."""

import asyncio
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

import relaycast as rc
from app.serve_client import Client
from app.serve_process import ServeProcess, journal_in
from command_line import Refused
from long_hauls import soak
from node.chains import ALICE, BOB, address, modelled, signed
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.network import living
from relaycast_gateway.log import EventLog
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.journal.entries import StoreEntry
from relaycast_node.journal.journal import InputJournal
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_pallets.frame.typed_storage import storage_prefix

ALICE_ADDRESS = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
IMPORTED = "io.relaycast.block.imported"


@pytest.fixture(scope="module")
def twin() -> ServedChain:
    """Return a relay chain like the served one, to sign for it."""
    return living("oracle").clock.relay


def transfer(twin: ServedChain, nonce: int) -> str:
    call = modelled(twin).runtime.encode_call("Balances", "transfer_keep_alive", dest=address(BOB), value=10**10)
    return "0x" + signed(twin, ALICE, call, nonce=nonce).hex()


def blocks_in_log(folder: Path) -> dict[bytes, list[tuple[int, str]]]:
    """Return number and hash of each block that the event log has, in order, by the chain that it came from."""
    found: dict[bytes, list[tuple[int, str]]] = {}
    with EventLog.open(folder / "events.sqlite") as log:
        for record in log.read(limit=1_000_000, namespaces=[IMPORTED]):
            headers = {name: value.content for name, value in record.headers}
            found.setdefault(record.source, []).append((headers["ce:blocknumber"], headers["ce:blockhash"]))
    return found


def ensure_no_gap_and_no_double(folder: Path) -> None:
    found = blocks_in_log(folder)
    assert len(found) == 4
    for blocks in found.values():
        assert [number for number, _ in blocks] == list(range(1, len(blocks) + 1))


def answers(chains: ServedNetwork) -> Any:
    """Return what clients read of all blocks: headers, bodies, states, proofs, pools."""
    told = []
    for para_id in (None, *chains.parachains):

        def ask(method: str, *params: Any, para_id: int | None = para_id) -> Any:
            return chains.call(method, *params, para_id=para_id)

        head = int(ask("chain_getHeader")["number"], 16)
        hashes = ask("chain_getBlockHash", list(range(head + 1)))
        told.append(
            [
                hashes,
                ask("chain_getFinalizedHead"),
                [ask("chain_getBlock", it) for it in hashes],
                [ask("state_getPairs", "0x", it) for it in (hashes[0], hashes[head // 2], hashes[-1])],
                [ask("state_getReadProof", ["0x3a636f6465"], it) for it in hashes],
                ask("author_pendingExtrinsics"),
                ask("system_accountNextIndex", ALICE_ADDRESS),
                ask("dev_readers"),
            ]
        )
    return told


def test_all_that_clients_read_is_there_after_a_restart(tmp_path: Path, twin: ServedChain) -> None:
    with rc.serve("oracle", data=tmp_path) as chains:
        chains.call("author_submitExtrinsic", transfer(twin, 0))
        chains.new_block(5)
        chains.call("dev_setStorage", [["0x61", "0x62"]])
        chains.call("dev_publish", 2000, "price", "0x01")
        snapshot = chains.call("dev_snapshot")
        chains.new_block(3)
        chains.call("dev_setHead", -1)
        chains.call("author_submitExtrinsic", transfer(twin, 1))
        chains.call("author_submitExtrinsic", transfer(twin, 3))
        before = answers(chains)
    with rc.serve("oracle", data=tmp_path) as chains:
        assert answers(chains) == before
        chains.new_block(2)
        assert chains.call("state_getStorage", "0x61") == "0x62"
        after = answers(chains)
    with rc.serve("oracle", data=tmp_path) as chains:
        assert answers(chains) == after
        assert chains.call("dev_revert", snapshot)
        assert chains.call("chain_getHeader")["number"] == "0x5"
    with rc.serve("oracle", data=tmp_path) as chains:
        assert chains.call("chain_getHeader")["number"] == "0x5"


@pytest.mark.parametrize(
    ("chain", "key"), [(None, bytes(40_000)), (3_000, storage_prefix("Subscriber", "SubscribedKeysDigests"))]
)
def test_a_journal_that_ends_in_an_input_that_no_block_holds_starts_and_goes_on(
    tmp_path: Path, chain: int | None, key: bytes
) -> None:
    with rc.serve("oracle", data=tmp_path) as chains:
        chains.new_block(2)
    journal, _ = InputJournal.open(journal_in(tmp_path))
    journal.note(StoreEntry(chain, [(key, b"\xff")], None))
    journal.close()
    with ServeProcess("oracle", "--block-time", "50ms", "--data", str(tmp_path)) as served:
        while int(served.ask("chain_getHeader")["number"], 16) < 5:
            pass
        head = served.ask("chain_getBlockHash", 4)
        served.process.send_signal(signal.SIGINT)
        out, err = served.process.communicate(timeout=60)
    assert (served.process.returncode, out) == (0, "stopped\n")
    (line,) = err.splitlines()
    assert line.startswith("relay block 3 could not be built: ")
    assert line.endswith("the input since then was dropped (kept in chains/dropped.jsonl)")
    assert json.loads((tmp_path / "chains" / "dropped.jsonl").read_text())["values"][0][1] == "0xff"
    ensure_no_gap_and_no_double(tmp_path)
    with rc.serve("oracle", data=tmp_path) as chains:
        assert chains.call("chain_getBlockHash", 4) == head


def test_the_events_of_blocks_go_on_without_a_gap_or_a_double(tmp_path: Path) -> None:
    for _ in range(3):
        with rc.serve("oracle", data=tmp_path) as chains:
            chains.new_block(4)
    ensure_no_gap_and_no_double(tmp_path)
    found = blocks_in_log(tmp_path)
    assert max(map(len, found.values())) == 12


@pytest.mark.slow
def test_without_the_gateways_faces_chains_and_events_are_kept_too(tmp_path: Path) -> None:
    options = ("--block-time", "manual", "--face", "node", "--data", str(tmp_path))
    with ServeProcess("oracle", *options) as served:
        assert served.lines[0] == "kept: 0 events and 0 subscriptions; the chains go on at relay block 0\n"
        head = served.ask("dev_newBlock", 3)
        served.stop()
    with ServeProcess("oracle", *options) as served:
        assert served.lines[0].endswith("the chains go on at relay block 3\n")
        assert served.ask("chain_getBlockHash") == head
        served.stop()
    ensure_no_gap_and_no_double(tmp_path)


@pytest.mark.slow
def test_events_of_a_log_that_begins_anew_are_counted_from_its_first_one(tmp_path: Path) -> None:
    with rc.serve("oracle", data=tmp_path) as chains:
        chains.new_block(2)
    for file in tmp_path.glob("events.sqlite*"):
        file.unlink()
    options = ("--block-time", "manual", "--data", str(tmp_path))
    with ServeProcess("oracle", *options, "--accept-loss") as served:
        assert served.lines[0] == "kept: 0 events and 0 subscriptions; the chains go on at relay block 2\n"
        served.ask("dev_newBlock")
        served.stop()
    with EventLog.open(tmp_path / "events.sqlite") as log:
        events = len(log.read(limit=1_000_000))
    with ServeProcess("oracle", *options) as served:
        assert served.lines[0].startswith(f"kept: {events} events and ")
        served.stop()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the chains of oracle at block 3."""
    folder = tmp_path_factory.mktemp("kept")
    with rc.serve("oracle", data=folder) as chains:
        chains.new_block(3)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {it.name: it.read_bytes() for it in (folder / "chains").iterdir()}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["ring-roots"], "got the chains of oracle, expected the same scenario, or another folder"),
        (["oracle", "--finality", "3"], "--finality: got 3, expected 2, as for the chains in "),
    ],
)
def test_other_chains_are_refused(kept: Path, refused: Refused, arguments: list[str], line: str) -> None:
    before = contents(kept)
    assert line in refused("serve", *arguments, "--port", "0", "--data", str(kept))
    assert contents(kept) == before


def test_a_scenario_that_was_changed_is_refused(tmp_path: Path) -> None:
    file, data = tmp_path / "mine.toml", tmp_path / "data"
    file.write_text('name = "mine"\nextends = "oracle"\nseed = 1\n')
    with rc.serve(file, data=data) as chains:
        chains.new_block()
    file.write_text('name = "mine"\nextends = "oracle"\nseed = 2\n')
    with (
        pytest.raises(ValueError, match="as it was before it was changed, expected the same scenario"),
        rc.serve(file, data=data),
    ):
        pass


@pytest.fixture
def copied(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of that folder, to be harmed."""
    folder = tmp_path_factory.mktemp("copied") / "data"
    shutil.copytree(kept, folder)
    return folder


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], "an entry that does not read, before others"),
        (lambda _: b"# my notes\n", "got a file that is no journal, expected a journal of this server, or none"),
        (lambda data: data[:3] + b"\x09" + data[4:], "got layout 9, expected a journal of this server, or none"),
    ],
)
def test_a_file_that_is_not_what_was_written_is_refused(copied: Path, harm: Any, line: str, refused: Refused) -> None:
    file = journal_in(copied)
    file.write_bytes(harm(file.read_bytes()))
    before = contents(copied)
    assert line in refused("serve", "oracle", "--port", "0", "--data", str(copied))
    assert contents(copied) == before


def test_a_torn_end_is_cut(copied: Path) -> None:
    file = journal_in(copied)
    file.write_bytes(file.read_bytes()[:-5])
    with rc.serve("oracle", data=copied) as chains:
        assert chains.call("chain_getHeader")["number"] == "0x3"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(copied: Path, refused: Refused) -> None:
    (copied / "chains").chmod(0o500)
    journal_in(copied).chmod(0o400)
    assert "permission denied" in refused("serve", "oracle", "--port", "0", "--data", str(copied))


def test_a_folder_that_cannot_be_synced_is_named(
    copied: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    line = refused("serve", "oracle", "--port", "0", "--data", str(copied))
    assert line.startswith(f"--data {copied}: got input/output error")


def test_what_cannot_be_kept_is_refused_and_leaves_the_chains_as_they_are(
    tmp_path: Path, twin: ServedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with rc.serve("oracle", data=tmp_path) as chains:
        chains.new_block(2)
        before = answers(chains)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            for method, *params in [
                ("dev_newBlock",),
                ("author_submitExtrinsic", transfer(twin, 0)),
                ("dev_snapshot",),
            ]:
                with pytest.raises(RpcError, match="cannot be written: no space left on device"):
                    chains.call(method, *params)
            assert answers(chains) == before
        chains.new_block()
        after = answers(chains)
    with rc.serve("oracle", data=tmp_path) as chains:
        assert answers(chains) == after


def test_the_pace_that_a_client_set_is_kept_unless_the_user_names_one(tmp_path: Path) -> None:
    with rc.serve("oracle", block_time="manual", data=tmp_path) as chains:
        chains.call("dev_setBlockTime", "instant")
    options = ("--data", str(tmp_path))
    with ServeProcess("oracle", *options) as served:
        assert "a block for each extrinsic" in served.lines[-1]
    with ServeProcess("oracle", "--block-time", "manual", *options) as served:
        assert "blocks on demand" in served.lines[-1]


@pytest.mark.slow
def test_a_user_who_stops_while_blocks_are_built_again_loses_nothing(tmp_path: Path) -> None:
    with rc.serve("oracle", data=tmp_path) as chains:
        chains.new_block(200)  # some seconds to build again
        head = chains.call("chain_getBlockHash")
    before = contents(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "relaycast", "serve", "oracle", "--port", "0", "--data", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert line.startswith("building kept blocks again: ")
    assert process.returncode == 130
    assert contents(tmp_path) == before
    with rc.serve("oracle", data=tmp_path) as chains:
        assert chains.call("chain_getBlockHash") == head


class Told:
    """What one client was told by a server that is going to be killed."""

    def __init__(self) -> None:
        self.final: dict[int, str] = {}
        self.sent: dict[int, str] = {}


async def _work(port: int, twin: ServedChain, told: Told, nonce: int) -> None:
    """Submit transfers and follow final blocks until the server is gone."""
    async with aiohttp.ClientSession() as session, session.ws_connect(f"ws://127.0.0.1:{port}/") as socket:
        client = Client(socket)
        await client.ask("chain_subscribeFinalizedHeads")
        while True:
            data = transfer(twin, nonce)
            found = await client.ask("author_submitExtrinsic", data)
            assert isinstance(found, str), found
            told.sent[nonce], nonce = data, nonce + 1
            for message in client.told:
                number = int(message["params"]["result"]["number"], 16)
                told.final.setdefault(number, "")
            client.told.clear()
            for number in [it for it, known in told.final.items() if not known]:
                told.final[number] = await client.ask("chain_getBlockHash", number)


async def _until_killed(served: ServeProcess, twin: ServedChain, told: Told, seconds: float) -> None:
    nonce = served.ask("system_accountNextIndex", ALICE_ADDRESS)
    work = asyncio.create_task(_work(served.port, twin, told, nonce))
    await asyncio.sleep(seconds)
    served.process.kill()
    with pytest.raises((aiohttp.ClientError, ConnectionError, TypeError, asyncio.TimeoutError)):
        await asyncio.wait_for(work, 30)


def ensure_kept(served: ServeProcess, told: Told) -> None:
    """Assert that all that was told holds."""
    for number, known in told.final.items():
        if known:
            assert served.ask("chain_getBlockHash", number) == known
            assert int(served.ask("chain_getHeader", known)["number"], 16) == number
    head = int(served.ask("chain_getHeader")["number"], 16)
    included = [
        extrinsic
        for number in range(1, head + 1)
        for extrinsic in served.ask("chain_getBlock", served.ask("chain_getBlockHash", number))["block"]["extrinsics"]
    ]
    waiting = served.ask("author_pendingExtrinsics")
    for data in told.sent.values():
        assert (included + waiting).count(data) == 1


def kill_again_and_again(folder: Path, twin: ServedChain, rounds: int, seed: int) -> None:
    told, random = Told(), Random(seed)
    options = ("--block-time", "manual", "--data", str(folder))
    for _ in range(rounds):
        with ServeProcess("oracle", *options) as served:
            ensure_kept(served, told)
            served.ask("dev_setBlockTime", "30ms")
            asyncio.run(_until_killed(served, twin, told, random.uniform(0.1, 1.5)))
    with ServeProcess("oracle", *options) as served:
        ensure_kept(served, told)
        served.stop()
    assert len(told.sent) > rounds
    ensure_no_gap_and_no_double(folder)


def test_whatever_a_client_was_told_is_there_after_a_kill(tmp_path: Path, twin: ServedChain) -> None:
    kill_again_and_again(tmp_path, twin, 2, 1)


@pytest.mark.slow
def test_whatever_a_client_was_told_is_there_after_eight_kills(tmp_path: Path, twin: ServedChain) -> None:
    kill_again_and_again(tmp_path, twin, 8, 2)


@soak(rounds=10)
def test_whatever_a_client_was_told_is_there_after_many_kills(
    tmp_path: Path, twin: ServedChain, soak_round: int
) -> None:
    kill_again_and_again(tmp_path, twin, 20, 1_000 + soak_round)
