"""Chains that are kept go on from a point of their journal, and are what they would be without it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import relaycast as rc
from node.chains import ALICE, BOB, address, modelled, signed
from relaycast.serve import kept_points, network
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.kept_points import KeptPoints
from relaycast.serve.network import living
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.rpc.rpc_error import RpcError

KEEP = 16


@pytest.fixture(autouse=True)
def many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a point every few ticks, and keep few blocks."""
    monkeypatch.setattr(kept_points, "TICKS_OF_A_POINT", 5)
    monkeypatch.setattr(network, "LEAST_KEPT", 8)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the relay blocks that chains began at, as they come."""
    found: list[int] = []
    load = ChainClock.load

    def noted(live: ChainClock, dump: Any) -> None:
        load(live, dump)
        found.append(live.relay.best.number)

    monkeypatch.setattr(ChainClock, "load", noted)
    return found


@pytest.fixture(scope="module")
def twin() -> ServedChain:
    """Return a relay chain like the served one, to sign for it."""
    return living("oracle").clock.relay


def transfer(twin: ServedChain, nonce: int) -> str:
    call = modelled(twin).runtime.encode_call("Balances", "transfer_keep_alive", dest=address(BOB), value=10**10)
    return "0x" + signed(twin, ALICE, call, nonce=nonce).hex()


def served(folder: Path, keep: str = str(KEEP)) -> Any:
    return rc.serve("oracle", data=folder, keep=keep)


def answers(chains: ServedNetwork) -> Any:
    """Return what clients read of all blocks that are kept."""
    told = []
    for para_id in (None, *chains.parachains):

        def ask(method: str, *params: Any, para_id: int | None = para_id) -> Any:
            try:
                return chains.call(method, *params, para_id=para_id)
            except RpcError as error:
                return str(error)

        head = int(ask("chain_getHeader")["number"], 16)
        hashes = ask("chain_getBlockHash", list(range(head + 1)))
        told.append(
            [
                hashes,
                [ask("archive_v1_hashByHeight", number) for number in range(head + 1)],
                ask("chain_getFinalizedHead"),
                [ask("chain_getBlock", it) for it in hashes if it],
                [ask("state_getPairs", "0x", it) for it in (*hashes[-KEEP - 1 :: 5], hashes[0])],
                [ask("state_getReadProof", ["0x3a636f6465"], it) for it in hashes[-KEEP - 1 :]],
                ask("author_pendingExtrinsics"),
                ask("dev_readers"),
            ]
        )
    return told


def points(folder: Path) -> list[Path]:
    return sorted((folder / "chains").glob("*.point"))


@pytest.mark.slow
def test_chains_go_on_from_a_point_and_are_what_they_were(tmp_path: Path, twin: ServedChain, begun: list[int]) -> None:
    first = transfer(twin, 0)
    with served(tmp_path) as chains:
        chains.call("author_submitExtrinsic", first)
        chains.new_block(24)
        chains.call("author_submitExtrinsic", transfer(twin, 1))
        snapshot = chains.call("dev_snapshot")
        chains.new_block(KEEP)
        before = answers(chains)
    assert begun == []
    with served(tmp_path) as chains:
        assert answers(chains) == before
        with pytest.raises(RpcError, match="the blocks of snapshot 1 are no longer kept"):
            chains.call("dev_revert", snapshot)
        with pytest.raises(RpcError, match="banned"):
            chains.call("author_submitExtrinsic", first)
        chains.call("author_submitExtrinsic", transfer(twin, 2))
        chains.new_block(30)
        after = answers(chains)
    assert begun == [25]
    with served(tmp_path) as chains:
        assert answers(chains) == after
        assert (snapshot, chains.call("dev_snapshot")) == ("0x1", "0x2")
    assert begun == [25, 55]
    assert len(points(tmp_path)) == 2


def no_point(folder: Path) -> None:
    for it in points(folder):
        it.unlink()


def damaged(folder: Path) -> None:
    data = bytearray(points(folder)[-1].read_bytes())
    data[len(data) // 2] ^= 1
    points(folder)[-1].write_bytes(data)


def of_another_journal(folder: Path) -> None:
    other = folder.parent / "other"
    with served(other) as chains:
        chains.call("dev_setStorage", [["0x61", "0x62"]])
        chains.new_block(60)
    for mine, its in zip(points(folder), points(other), strict=True):
        shutil.copy(its, mine)


def empty(folder: Path) -> None:
    points(folder)[-1].write_bytes(b"")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a folder with two points, and what clients read."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patched:
        many_points.__wrapped__(patched)  # type: ignore[attr-defined]
        with served(folder) as chains:
            chains.new_block(60)
            return folder, answers(chains)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "begins"),
    [
        (no_point, []),
        (damaged, [40]),  # the point before serves
        (empty, [40]),
        (of_another_journal, []),
    ],
)
def test_a_point_that_is_not_what_was_written_counts_for_nothing(
    kept: tuple[Path, Any], tmp_path: Path, begun: list[int], harm: Callable[[Path], None], begins: list[int]
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(kept[0], folder)
    harm(folder)
    with served(folder) as chains:
        assert answers(chains) == kept[1]
    assert begun == begins


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "begins"), [("17", []), ("all", []), ("15", [45])])
def test_more_blocks_than_a_point_has_behind_it_are_built_again(
    kept: tuple[Path, Any], tmp_path: Path, begun: list[int], keep: str, begins: list[int]
) -> None:
    shutil.copytree(kept[0], tmp_path / "data")
    with served(tmp_path / "data", keep) as chains:
        newest = chains.call("chain_getBlockHash")
        oldest = chains.call("chain_getBlockHash", 1 if keep == "all" else 60 - int(keep) + 1)
        assert chains.call("state_getPairs", "0x", oldest)
    assert newest == kept[1][0][0][-1]
    assert begun == begins


@pytest.mark.slow
def test_no_point_is_taken_while_transactions_wait(tmp_path: Path, twin: ServedChain) -> None:
    with served(tmp_path) as chains:
        chains.call("author_submitExtrinsic", transfer(twin, 3))  # three others come first
        chains.new_block(60)
    assert points(tmp_path) == []


def live_through(folder: Path, twin: ServedChain, draw: Random, steps: int) -> Any:
    """Let chains live for some steps, as several clients would have it, and return what is read at the end."""
    with served(folder) as chains:
        for _ in range(steps):
            action = draw.choice(["build", "build", "build", "back", "store", "publish", "send", "snapshot", "revert"])
            try:
                match action:
                    case "build":
                        chains.new_block(draw.randint(1, 9))
                    case "back":
                        chains.call("dev_setHead", -draw.randint(1, 3))
                    case "store":
                        chains.call("dev_setStorage", [["0x61", f"0x{draw.randbytes(2).hex()}"]])
                    case "publish":
                        chains.call("dev_publish", 2000, "price", f"0x{draw.randbytes(3).hex()}")
                    case "send":
                        nonce = chains.call(
                            "system_accountNextIndex", "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
                        )
                        chains.call("author_submitExtrinsic", transfer(twin, nonce + draw.choice([0, 0, 1])))
                    case "snapshot":
                        chains.call("dev_snapshot")
                    case "revert":
                        chains.call("dev_revert", hex(draw.randint(1, 8)))
            except RpcError:
                pass
        return answers(chains)


def ensure_points_change_nothing(folder: Path, twin: ServedChain, seed: int, lives: int) -> int:
    """Let chains live several lives; return how many of these began at a point."""
    draw, count = Random(seed), 0
    whole = folder / "whole"
    for _ in range(lives):
        before = live_through(folder / "data", twin, draw, 20)
        count += bool(points(folder / "data"))
        with served(folder / "data") as chains:
            assert answers(chains) == before
        shutil.copytree(folder / "data", whole)
        no_point(whole)
        with served(whole) as chains:
            assert answers(chains) == before
        shutil.rmtree(whole)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_points_change_nothing_in_any_history(tmp_path: Path, twin: ServedChain, seed: int) -> None:
    assert ensure_points_change_nothing(tmp_path, twin, seed, lives=2) > 0


def test_a_point_on_a_branch_that_was_left_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: it lets chains begin at a point although they went back behind it."""
    monkeypatch.setattr(KeptPoints, "_drop_left", lambda _: None)
    with served(tmp_path) as chains:
        chains.new_block(5)
        chains.call("dev_setHead", -2)
        chains.call("dev_setStorage", [["0x61", "0x62"]])
        chains.new_block(KEEP + 8)
        before = answers(chains)
    assert len(points(tmp_path)) > 0
    for later in points(tmp_path)[1:]:
        later.unlink()
    with pytest.raises(ValueError, match="whose blocks are others"), served(tmp_path) as chains:
        assert answers(chains) == before
