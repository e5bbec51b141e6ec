"""What clients see when the chains go back: other heads, returned transactions, snapshots, another time."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from node.chains import ALICE, BOB, PUBLISHER, address, live_chains, modelled, signed
from relaycast_collator import ChainSimulator
from relaycast_collator.collator import Pace
from relaycast_node.chain_clock import MOST_SNAPSHOTS, ChainClock
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_node.rpc.storage_queries import queries_of
from relaycast_pallets.frame.typed_storage import storage_prefix
from relaycast_pallets.timestamp import GENESIS_MILLISECONDS, SLOT_MILLISECONDS

Ask = Callable[..., Any]
Told = Callable[[], list[Any]]


@pytest.fixture
def live() -> ChainClock:
    return live_chains()


@pytest.fixture
def face(live: ChainClock) -> NodeFace:
    return NodeFace(live, version="1.2.3")


def hashes(ask: Ask, last: int) -> list[str]:
    return [ask("chain_getBlockHash", number) for number in range(last + 1)]


def transfer(live: ChainClock, value: int = 1) -> str:
    call = modelled(live.relay).runtime.encode_call(
        "Balances", "transfer_keep_alive", dest=address(BOB), value=value * 10**10
    )
    return f"0x{signed(live.relay, ALICE, call).hex()}"


def test_a_kept_block_becomes_the_head_and_the_next_one_stands_beside_the_old(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 5)
    old = hashes(ask, 5)
    assert ask("dev_setHead", old[4]) == old[4]
    assert ask("chain_getHeader")["number"] == "0x4"
    assert ask("chain_getBlockHash", 5) is None
    assert {chain.best.number for chain in live.served()} == {4}
    ask("dev_setStorage", [["0xaa", "0x01"]])
    new = ask("dev_newBlock")
    assert new != old[5]
    assert ask("chain_getHeader", new)["parentHash"] == old[4]
    assert ask("archive_v1_hashByHeight", 5) == [new, old[5]]
    assert [ask("state_getStorage", "0xaa", at) for at in (new, old[5])] == ["0x01", None]


def test_a_branch_that_was_left_can_be_the_best_again(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 4)
    old = ask("chain_getBlockHash", 4)
    ask("dev_setHead", -1)
    ask("dev_setStorage", [["0xaa", "0x01"]])
    ask("dev_newBlock")
    assert ask("dev_setHead", old) == old == ask("chain_getBlockHash")
    assert ask("state_getStorage", "0xaa") is None
    ask("dev_newBlock")
    assert ask("chain_getHeader")["parentHash"] == old


def test_the_same_block_built_again_is_the_same_block(ask: Ask, told: Told) -> None:
    ask("dev_newBlock", 3)
    ask("chain_subscribeAllHeads")
    told()
    old = ask("chain_getBlockHash")
    ask("dev_setHead", -1)
    assert ask("dev_newBlock") == old
    assert told() == []
    assert ask("archive_v1_hashByHeight", 3) == [old]


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (1, 4003, "Client error: block 1 does not descend from the finalized block 3"),
        ("0x" + "00" * 32, 4003, "UnknownBlock: Header was not found"),
        (9, -32602, "hashOrNumber: got 9, expected the hash of a block, its number on the best branch"),
        ("0x12", -32602, "hashOrNumber: got '0x12', expected"),
        (None, -32602, "hashOrNumber: got null, expected"),
        (True, -32602, "hashOrNumber: got true, expected"),
        ([], -32602, "hashOrNumber: got a list of 0 items, expected"),
    ],
)
def test_a_head_that_cannot_be_is_refused_and_nothing_moves(
    ask: Ask, live: ChainClock, wanted: object, code: int, said: str
) -> None:
    ask("dev_newBlock", 5)
    before = [(it.best.hash, it._state.snapshot()) for it in live.served()]
    found = ask("dev_setHead", wanted)
    assert found[0] == code
    assert said in f"{found[1]} {found[2]}"
    assert [(it.best.hash, it._state.snapshot()) for it in live.served()] == before


def test_parachain_blocks_on_lost_parents_go_and_a_parachains_head_moves_all(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 4)
    lost = live.parachains[PUBLISHER].best.hash
    ask("dev_setHead", 3)
    assert live.parachains[PUBLISHER].best.number == 3
    assert lost not in {live.parachains[PUBLISHER].hash_of(number) for number in range(5)}
    live.set_head(live.parachains[PUBLISHER], lost)
    assert {it.best.number for it in live.served()} == {4}


def test_transactions_of_lost_blocks_return_to_the_pool_and_come_again(ask: Ask, told: Told, live: ChainClock) -> None:
    ask("dev_newBlock", 3)
    extrinsic = transfer(live)
    ask("author_submitAndWatchExtrinsic", extrinsic)
    first = ask("dev_newBlock")
    ask("dev_setHead", 3)
    assert ask("author_pendingExtrinsics") == [extrinsic]
    assert ask("system_accountNextIndex", "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY") == 1
    ask("dev_setStorage", [["0xaa", "0x01"]])
    second = ask("dev_newBlock")
    ask("dev_newBlock", 2)
    statuses = [status for name, _, status in told() if name == "author_extrinsicUpdate"]
    assert statuses == [
        "ready", {"inBlock": first}, {"retracted": first}, "ready", {"inBlock": second}, {"finalized": second}
    ]  # fmt: skip


def test_subscriptions_tell_the_difference_between_two_heads(ask: Ask, told: Told, live: ChainClock) -> None:
    ask("dev_newBlock", 2)
    ask("dev_setStorage", [["0xaa", "0x01"], ["0xbb", "0x01"]])
    ask("dev_newBlock")
    ask("state_subscribeStorage", ["0xaa", "0xbb", "0xcc"])
    ask("chain_subscribeNewHeads")
    told()
    parent = ask("dev_setHead", 2)
    (_, _, changes), (_, _, head) = told()
    assert changes == {"block": parent, "changes": [["0xaa", None], ["0xbb", None]]}
    assert head["number"] == "0x2"
    ask("dev_setStorage", [["0xbb", "0x01"], ["0xcc", "0x02"]])
    other = ask("dev_newBlock")
    (_, _, changes), (_, _, head) = told()
    assert changes == {"block": other, "changes": [["0xbb", "0x01"], ["0xcc", "0x02"]]}
    assert head["number"] == "0x3"


def followed(told: Told) -> list[tuple[str, ...]]:
    """Return the events of a follow subscription with the hashes that they name."""
    names = ("blockHash", "bestBlockHash", "finalizedBlockHashes", "prunedBlockHashes")
    return [(it["event"], *(it[name] for name in names if name in it)) for _, _, it in told()]


def test_a_follower_is_told_of_the_best_block_and_of_what_finality_prunes(ask: Ask, told: Told) -> None:
    ask("dev_newBlock", 3)
    ask("chainHead_v1_follow", False)
    old = hashes(ask, 3)
    assert followed(told)[0][0] == "initialized"
    ask("dev_setHead", 2)
    assert followed(told) == [("bestBlockChanged", old[2])]
    ask("dev_setStorage", [["0xaa", "0x01"]])
    new = [ask("dev_newBlock") for _ in range(3)]
    assert followed(told) == [
        ("newBlock", new[0]), ("bestBlockChanged", new[0]),
        ("newBlock", new[1]), ("bestBlockChanged", new[1]), ("finalized", [old[2]], []),
        ("newBlock", new[2]), ("bestBlockChanged", new[2]), ("finalized", [new[0]], [old[3]]),
    ]  # fmt: skip


def test_a_follower_that_never_heard_of_a_branch_hears_of_it_before_it_is_the_best(ask: Ask, told: Told) -> None:
    ask("dev_newBlock", 3)
    old = hashes(ask, 3)
    ask("dev_setHead", 2)
    ask("dev_setStorage", [["0xaa", "0x01"]])
    ask("dev_newBlock")
    ask("chainHead_v1_follow", False)
    told()
    ask("dev_setHead", old[3])
    assert followed(told) == [("newBlock", old[3]), ("bestBlockChanged", old[3])]


def test_a_snapshot_brings_everything_back_below_final_blocks_too(ask: Ask, told: Told, live: ChainClock) -> None:
    ask("dev_newBlock", 2)
    ask("author_submitExtrinsic", transfer(live))
    ask("dev_setStorage", [["0xaa", "0x01"]])
    before, waiting = hashes(ask, 2), ask("author_pendingExtrinsics")
    number = ask("dev_snapshot")
    ask("chainHead_v1_follow", False)
    expected = [ask("dev_newBlock") for _ in range(9)]
    assert ask("chain_getFinalizedHead") == expected[6]
    told()
    assert ask("dev_revert", number) is True
    assert followed(told) == [("stop",)]
    assert (hashes(ask, 2), ask("author_pendingExtrinsics")) == (before, waiting)
    assert ask("chain_getFinalizedHead") == before[0]
    assert [ask("dev_newBlock") for _ in range(9)] == expected, "what waited for the next block waits again"
    assert ask("dev_revert", number)[0] == -32602


def test_reverting_forgets_later_snapshots_and_keeps_earlier_ones(ask: Ask) -> None:
    first, second, third = (ask("dev_newBlock") and ask("dev_snapshot") for _ in range(3))
    assert ask("dev_revert", second) is True
    assert "0x1" in ask("dev_revert", third)[2]
    assert ask("dev_revert", first) is True
    assert "there is none" in ask("dev_revert", "zz")[2] or "expected the id" in ask("dev_revert", "zz")[2]


def test_snapshots_are_limited(ask: Ask) -> None:
    ask("dev_newBlock")
    for _ in range(MOST_SNAPSHOTS):
        ask("dev_snapshot")
    assert ask("dev_snapshot")[1] == f"Client error: {MOST_SNAPSHOTS} snapshots are kept already, revert to one of them"


def test_time_travels_forward_for_all_chains_and_back_with_the_head(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 3)
    assert ask("dev_timeTravel", "2026-03-01T00:00:00Z") == 1_772_323_200_000
    ask("dev_newBlock")
    now = modelled(live.relay).executive.timestamp
    assert now.now == 1_772_323_200_000
    ask("dev_newBlock")
    assert now.now == 1_772_323_200_000 + SLOT_MILLISECONDS
    assert modelled(live.parachains[PUBLISHER]).executive.timestamp.now == now.now
    ask("dev_setHead", 3)
    ask("dev_newBlock")
    assert now.now == GENESIS_MILLISECONDS + 4 * SLOT_MILLISECONDS


def test_a_transaction_from_after_a_snapshot_is_gone_with_its_block_and_can_come_again(
    ask: Ask, told: Told, live: ChainClock
) -> None:
    ask("dev_newBlock", 2)
    number, extrinsic = ask("dev_snapshot"), transfer(live)
    ask("author_submitAndWatchExtrinsic", extrinsic)
    block = ask("dev_newBlock")
    ask("dev_revert", number)
    assert [it for _, _, it in told()] == ["ready", {"inBlock": block}, {"retracted": block}, "dropped"]
    assert ask("author_pendingExtrinsics") == []
    ask("author_submitExtrinsic", extrinsic)
    assert ask("dev_newBlock") == block


def test_the_head_moves_although_blocks_come_with_extrinsics(ask: Ask, live: ChainClock) -> None:
    live.block_time = "instant"
    live._changed.clear()
    ask("dev_newBlock", 2)
    live.relay.submit(bytes.fromhex(transfer(live)[2:]))
    live.new_block()
    live._changed.clear()
    ask("dev_setHead", 2)
    assert not live._changed.is_set(), "or the lost block would be built again at once"
    assert len(ask("author_pendingExtrinsics")) == 1


@pytest.mark.parametrize("date", [0, -1, 10**30, "yesterday", None, [1]])
def test_a_time_that_is_none_or_in_the_past_is_refused(ask: Ask, live: ChainClock, date: object) -> None:
    ask("dev_newBlock")
    code, message, data = ask("dev_timeTravel", date)
    assert code in {4003, -32602}
    assert "the next block's time is" in message or "expected milliseconds since 1970" in data
    assert live.time.offset == 0


def test_the_whole_state_is_dumped_as_a_chain_spec_has_it(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 2)
    raw = ask("dev_dumpState")["genesis"]["raw"]
    state = live.relay.state_at(live.relay.best.hash)
    assert raw["top"] == {f"0x{key.hex()}": f"0x{value.hex()}" for key, value in state.pairs()}
    assert ask("dev_dumpState", "0x" + "11" * 32)[0] == 4003


def test_old_blocks_are_forgotten_and_named_as_such(ask: Ask, live: ChainClock) -> None:
    for chain in live.served():
        chain.kept_blocks = 10
    ask("dev_newBlock", 30)
    old = live.relay.hash_of(0)
    assert old is not None
    assert ask("chain_getBlockHash", 0) == f"0x{old.hex()}", "clients know a chain by its genesis block"
    assert ask("chain_getBlockHash", 20) is None
    assert ask("chain_getBlockHash", 21) is not None
    assert "State already discarded" in ask("state_getStorage", "0xaa", f"0x{old.hex()}")[1]
    assert ask("state_getKeysPaged", "0x", 5, "0x", ask("chain_getBlockHash", 21))


def test_a_parachain_of_two_blocks_a_tick_is_final_with_the_relay_chain() -> None:
    chains = ChainSimulator()
    chains.add_parachain(PUBLISHER, pace=Pace(cores=2))
    live = ChainClock(chains, chains.step)
    live.new_block(6)
    parachain = live.parachains[PUBLISHER]
    assert (live.relay.finalized.number, parachain.finalized.number, parachain.best.number) == (4, 8, 12)
    live.set_head(live.relay, live.relay.finalized.hash)
    assert parachain.best.number == 8


@pytest.mark.parametrize(
    "date", ["2200-01-01T00:00:00Z", "2263-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 7_258_118_400_000]
)
def test_a_time_beyond_what_event_logs_count_is_refused(ask: Ask, live: ChainClock, date: object) -> None:
    code, _, data = ask("dev_timeTravel", date)
    assert code == -32602
    assert "before 2200-01-01T00:00:00Z" in data
    assert ask("dev_timeTravel", "2199-12-31T23:59:00Z") == 7_258_118_340_000
    ask("dev_newBlock", 20)
    assert live.relay.best.number == 20


def test_a_failed_block_is_answered_with_the_reason_and_the_chains_stand(ask: Ask, live: ChainClock) -> None:
    ask("dev_newBlock", 2)
    live.set_storage(None, {storage_prefix("Timestamp", "Now"): b"\xff"}, is_checked=True)
    code, message, data = ask("dev_newBlock")
    assert (code, data) == (4003, None)
    assert message.startswith("Client error: relay block 3 could not be built: a u64 has 8 bytes")
    assert message.endswith("the chains are back at relay block 2, the input since then was dropped")
    ask("dev_newBlock")
    assert live.relay.best.number == 3


def test_a_value_that_a_pallet_cannot_read_is_refused_with_its_item(ask: Ask) -> None:
    key = f"0x{storage_prefix('Timestamp', 'Now').hex()}"
    assert ask("dev_setStorage", [[key, "0xff"]]) == (
        -32602,
        "Invalid params",
        "values: Timestamp.Now: got 0xff, expected a u64: a u64 has 8 bytes, got 1 at byte 0",
    )
    _, _, data = ask("dev_setStorage", [["0x" + "00" * 40_000, "0x"]])
    assert data == "values: a key has at most 32,767 bytes, got 40,000"


@pytest.mark.parametrize(
    ("method", "params", "known"),
    [
        ("dev_newBlock", [{"cuont": 2}], "count: got 'cuont', expected members named count, calls, transactions"),
        ("dev_newBlock", {"cuont": 2}, "params: got 'cuont', expected members named count, calls"),
        ("dev_publish", {"publisher": 2000, "key": "k", "value": "0x", "tll": 1}, "params: got 'tll', expected"),
        ("system_chain", {"x": 1}, "params: got 'x', expected no members"),
    ],
)
def test_members_that_no_method_knows_are_refused_by_name(
    raw: Any, live: ChainClock, method: str, params: Any, known: str
) -> None:
    answer = raw(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    assert answer["error"]["data"].startswith(known)
    assert live.relay.best.number == 0


def test_members_of_a_storage_query_are_refused_by_name() -> None:
    with pytest.raises(RpcError, match=r"items\[0\]: got 'paginationStartkey', expected members named key, type, pag"):
        queries_of([{"key": "0x", "type": "value", "paginationStartkey": "0x"}], are_paged=True)
