"""``chainHead_v1_*``: events, pins and reads of a client that follows a chain."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.rpc import chain_follow, chain_head_methods
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import RpcSession
from relaycast_node.rpc.storage_queries import closest_merkle_value
from relaycast_trie import StateVersion, StorageProof, blake2_256
from relaycast_trie.node_codec import EMPTY_ROOT
from relaycast_trie.plain.build import build_database
from small_chain import SmallChain

Ask = Callable[..., Any]
Told = Callable[[], list[Any]]

CHILD = b"pubsub" + (2000).to_bytes(4, "little")


def hexed(data: bytes) -> str:
    return f"0x{data.hex()}"


@pytest.fixture
def follow(ask: Ask, told: Told) -> str:
    """Return a follow subscription whose opening has been read."""
    name: str = ask("chainHead_v1_follow", True)
    told()
    return name


@pytest.fixture
def best(chain: SmallChain) -> str:
    return hexed(chain.best.hash)


@pytest.fixture
def run(ask: Ask, told: Told, follow: str) -> Callable[..., list[Any]]:
    """Begin an operation and return its events, without its id."""

    def call(method: str, *params: Any) -> list[Any]:
        begun = ask(f"chainHead_v1_{method}", follow, *params)
        assert begun["result"] == "started", begun
        events = [event for _, _, event in told()]
        assert {event.pop("operationId") for event in events} == {begun["operationId"]}
        return events

    return call


def test_a_client_hears_of_finalized_blocks_then_of_newer_ones_then_of_the_best(
    ask: Ask, told: Told, chain: SmallChain
) -> None:
    name = ask("chainHead_v1_follow", False)
    found = told()
    assert {(method, subscription) for method, subscription, _ in found} == {("chainHead_v1_followEvent", name)}
    hashes = [hexed(block.hash) for block in chain.blocks]
    assert [event for _, _, event in found] == [
        {"event": "initialized", "finalizedBlockHashes": [hashes[0]]},
        {"event": "newBlock", "blockHash": hashes[1], "parentBlockHash": hashes[0]},
        {"event": "newBlock", "blockHash": hashes[2], "parentBlockHash": hashes[1]},
        {"event": "bestBlockChanged", "bestBlockHash": hashes[2]},
    ]
    block = chain.add()
    assert [event for _, _, event in told()] == [
        {"event": "newBlock", "blockHash": hexed(block.hash), "parentBlockHash": hashes[2]},
        {"event": "bestBlockChanged", "bestBlockHash": hexed(block.hash)},
        {"event": "finalized", "finalizedBlockHashes": [hashes[1]], "prunedBlockHashes": []},
    ]


def test_with_runtime_the_first_event_has_it_and_blocks_with_new_code_too(
    ask: Ask, told: Told, chain: SmallChain
) -> None:
    ask("chainHead_v1_follow", True)
    runtime = told()[0][2]["finalizedBlockRuntime"]
    assert runtime["type"] == "valid"
    assert (runtime["spec"]["specName"], runtime["spec"]["specVersion"]) == ("small", 7)
    assert isinstance(runtime["spec"]["apis"], dict)
    chain.add()
    assert told()[0][2]["newRuntime"] is None
    chain.add({b":code": b"another"})
    assert told()[0][2]["newRuntime"] == runtime


def test_after_unfollow_nothing_more_is_told(ask: Ask, told: Told, chain: SmallChain, follow: str, best: str) -> None:
    assert ask("chainHead_v1_unfollow", follow) is None
    chain.add()
    assert told() == []
    assert chain.new_heads.callbacks == chain.finalized_heads.callbacks == []
    assert ask("chainHead_v1_header", follow, best) is None
    assert ask("chainHead_v1_body", follow, best) == {"result": "limitReached"}
    assert ask("chainHead_v1_unfollow", follow) is None


def test_a_header_is_its_scale_bytes(ask: Ask, chain: SmallChain, follow: str, best: str) -> None:
    assert ask("chainHead_v1_header", follow, best) == hexed(chain.best.header.encode())


def test_a_body_is_the_block_s_extrinsics(run: Callable[..., list[Any]], chain: SmallChain, best: str) -> None:
    assert run("body", best) == [{"event": "operationBodyDone", "value": []}]
    assert chain.best.extrinsics == ()


def test_a_call_is_answered_or_its_refusal_told(run: Callable[..., list[Any]], best: str) -> None:
    (done,) = run("call", best, "Metadata_metadata_versions", "0x")
    assert done["event"] == "operationCallDone"
    (refused,) = run("call", best, "Nothing_like_it", "0x")
    assert refused["event"] == "operationError"
    assert "Nothing_like_it" in refused["error"]


@pytest.mark.parametrize(
    ("kind", "key", "answer"),
    [
        ("value", b"a1", [{"key": b"a1", "value": b"ONE"}]),
        ("value", b"b", []),
        ("hash", b"a2", [{"key": b"a2", "hash": blake2_256(b"two" * 20)}]),
        ("descendantsValues", b"a", [{"key": b"a1", "value": b"ONE"}, {"key": b"a2", "value": b"two" * 20}]),
        ("descendantsHashes", b"a2", [{"key": b"a2", "hash": blake2_256(b"two" * 20)}]),
        ("descendantsValues", b"zz", []),
    ],
)
def test_storage_is_told_by_what_was_asked(
    run: Callable[..., list[Any]], best: str, kind: str, key: bytes, answer: list[dict[str, bytes]]
) -> None:
    events = run("storage", best, [{"key": hexed(key), "type": kind}])
    items = [{name: hexed(value) for name, value in item.items()} for item in answer]
    told = [{"event": "operationStorageItems", "items": items}] if items else []
    assert events == [*told, {"event": "operationStorageDone"}]


def test_a_child_trie_is_named_without_its_prefix(run: Callable[..., list[Any]], best: str) -> None:
    items, done = run("storage", best, [{"key": "0x", "type": "descendantsValues"}], hexed(CHILD))
    assert [it["value"] for it in items["items"]] == [hexed(b"price"), hexed(b"rate")]
    assert done == {"event": "operationStorageDone"}
    assert run("storage", best, [{"key": "0x", "type": "descendantsValues"}], "0x1234") == [
        {"event": "operationStorageDone"}
    ]


def test_the_merkle_value_changes_with_what_is_below_and_with_nothing_else(
    told: Told, run: Callable[..., list[Any]], chain: SmallChain
) -> None:
    query = [{"key": hexed(b"a"), "type": "closestDescendantMerkleValue"}]
    first = chain.add({b"zz": b"elsewhere"})
    told()
    before = run("storage", hexed(first.hash), query)[0]["items"]
    other = chain.add({b"zz": b"changed"})
    told()
    assert run("storage", hexed(other.hash), query)[0]["items"] == before
    below = chain.add({b"a3": b"new"})
    told()
    assert run("storage", hexed(below.hash), query)[0]["items"] != before


def test_merkle_values_are_those_of_the_nodes() -> None:
    pairs = [(b"a1", b"1" * 40), (b"a2", b"2" * 40), (b"b", b"3")]
    database, root = build_database(pairs, state_version=StateVersion.V1)
    proof = StorageProof.generate(database, root, [key for key, _ in pairs])
    nodes = dict(proof.by_hash())
    assert closest_merkle_value(nodes, root, b"") == root
    below = closest_merkle_value(nodes, root, b"a")
    assert below in nodes
    assert below == closest_merkle_value(nodes, root, b"a\x31"[:1])
    leaf = closest_merkle_value(nodes, root, b"a1")
    assert leaf in nodes
    assert leaf != below
    inline = closest_merkle_value(nodes, root, b"b")
    assert inline is not None
    assert len(inline) < 32
    assert closest_merkle_value(nodes, root, b"a1x") is None
    assert closest_merkle_value(nodes, root, b"c") is None
    assert closest_merkle_value({}, EMPTY_ROOT, b"") is None


def test_a_long_answer_comes_in_parts_that_the_client_asks_for(
    ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, follow: str, best: str
) -> None:
    monkeypatch.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
    begun = ask("chainHead_v1_storage", follow, best, [{"key": hexed(b"a"), "type": "descendantsValues"}])
    seen = []
    for _ in range(10):
        events = [event for _, _, event in told()]
        seen += [item["key"] for event in events if "items" in event for item in event["items"]]
        if events[-1]["event"] == "operationStorageDone":
            break
        assert events[-1]["event"] == "operationWaitingForContinue"
        assert ask("chainHead_v1_continue", follow, begun["operationId"]) is None
    assert seen == [hexed(b"a1"), hexed(b"a2")]
    assert ask("chainHead_v1_continue", follow, begun["operationId"]) is None, "it has ended"
    assert told() == []


def test_only_an_operation_that_waits_is_continued(
    raw: Callable[[str], Any], told: Told, monkeypatch: pytest.MonkeyPatch, follow: str, best: str
) -> None:
    """In one batch: the client continues before it was asked to."""
    monkeypatch.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
    query = [{"key": hexed(b"a"), "type": "descendantsValues"}]
    requests = [("chainHead_v1_storage", [follow, best, query]), ("chainHead_v1_continue", [follow, "1"])]
    batch = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in requests]
    begun, refused = raw(json.dumps(batch))
    assert begun["result"] == {"result": "started", "operationId": "1", "discardedItems": 0}
    assert refused["error"]["code"] == chain_head_methods.INVALID_CONTINUE
    assert [event["event"] for _, _, event in told()] == ["operationStorageItems", "operationWaitingForContinue"]


def test_calls_need_a_subscription_with_the_runtime(ask: Ask, told: Told, best: str) -> None:
    name = ask("chainHead_v1_follow", False)
    told()
    assert ask("chainHead_v1_call", name, best, "Core_version", "0x")[0] == chain_head_methods.INVALID_CALL
    assert told() == []


def test_an_operation_is_continued_once_for_each_time_that_it_waits(
    raw: Callable[[str], Any], ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, follow: str, best: str
) -> None:
    monkeypatch.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
    items = [{"key": hexed(key), "type": "value"} for key in (b"a1", b"a2", b"a1", b"a2")]
    begun = ask("chainHead_v1_storage", follow, best, items)
    told()
    request = {"jsonrpc": "2.0", "method": "chainHead_v1_continue", "params": [follow, begun["operationId"]]}
    answers = raw(json.dumps([{**request, "id": number} for number in range(50)]))
    assert answers[0]["result"] is None
    assert {it["error"]["code"] for it in answers[1:]} == {chain_head_methods.INVALID_CONTINUE}
    assert [event["event"] for _, _, event in told()] == ["operationStorageItems", "operationWaitingForContinue"]


def test_a_stopped_operation_tells_nothing_more(
    ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, follow: str, best: str
) -> None:
    monkeypatch.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
    begun = ask("chainHead_v1_storage", follow, best, [{"key": hexed(b"a"), "type": "descendantsValues"}])
    told()
    assert ask("chainHead_v1_stopOperation", follow, begun["operationId"]) is None
    assert ask("chainHead_v1_continue", follow, begun["operationId"]) is None
    assert told() == []


def test_operations_under_way_are_bounded(
    ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, follow: str, best: str
) -> None:
    monkeypatch.setattr(chain_follow, "ITEMS_AT_A_TIME", 1)
    query = [{"key": hexed(b"a"), "type": "descendantsValues"}]
    for _ in range(chain_follow.MOST_OPERATIONS):
        assert ask("chainHead_v1_storage", follow, best, query)["result"] == "started"
    assert ask("chainHead_v1_storage", follow, best, query) == {"result": "limitReached"}
    told()


def test_an_unpinned_block_is_not_read_any_more(ask: Ask, follow: str, best: str, chain: SmallChain) -> None:
    older = hexed(chain.blocks[1].hash)
    assert ask("chainHead_v1_unpin", follow, [best, best])[0] == chain_head_methods.DUPLICATE_HASHES
    assert ask("chainHead_v1_unpin", follow, [best, hexed(bytes(32))])[0] == chain_head_methods.INVALID_BLOCK
    assert ask("chainHead_v1_header", follow, best) is not None  # all or none
    assert ask("chainHead_v1_unpin", follow, best) is None
    for method, params in (("header", ()), ("body", ()), ("call", ("Core_version", "0x")), ("storage", ([],))):
        assert ask(f"chainHead_v1_{method}", follow, best, *params)[0] == chain_head_methods.INVALID_BLOCK
    assert ask("chainHead_v1_unpin", follow, [older]) is None


def test_a_client_that_pins_too_much_is_stopped(
    ask: Ask,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    follow: str,
    chain: SmallChain,
    best: str,
    session: RpcSession,
) -> None:
    """What was stopped is as if it never was: it takes no place among those that the client may have."""
    monkeypatch.setattr(chain_follow, "MOST_PINNED", 4)
    chain.add()
    assert all(event["event"] != "stop" for _, _, event in told())
    chain.add()
    assert [event for _, _, event in told()] == [{"event": "stop"}]
    chain.add()
    assert told() == []
    assert ask("chainHead_v1_header", follow, best) is None
    assert ask("chainHead_v1_body", follow, best) == {"result": "limitReached"}
    assert ask("chainHead_v1_unpin", follow, best) is None
    assert not session.kept
    assert not session.subscriptions
    assert chain.new_heads.callbacks == chain.finalized_heads.callbacks == []


def test_a_client_that_was_stopped_may_begin_anew_without_ending_what_has_ended(
    ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, session: RpcSession, chain: SmallChain
) -> None:
    monkeypatch.setattr(chain_follow, "MOST_PINNED", 3)
    for _ in range(chain_head_methods.MOST_FOLLOWS + 1):
        assert isinstance(ask("chainHead_v1_follow", False), str)
        for _ in range(4):
            chain.add()
        assert [event for _, _, event in told()][-1] == {"event": "stop"}
    assert (session.kept, chain.new_heads.callbacks, chain.finalized_heads.callbacks) == ({}, [], [])


def test_follow_subscriptions_of_a_connection_are_bounded(ask: Ask, told: Told, session: RpcSession) -> None:
    names = [ask("chainHead_v1_follow", False) for _ in range(chain_head_methods.MOST_FOLLOWS)]
    assert ask("chainHead_v1_follow", False)[0] == chain_head_methods.TOO_MANY_FOLLOWS
    ask("chainHead_v1_unfollow", names[0])
    assert isinstance(ask("chainHead_v1_follow", False), str)
    told()
    assert len(session.kept) == chain_head_methods.MOST_FOLLOWS


def test_one_client_cannot_use_what_another_follows(face: NodeFace, ask: Ask, told: Told, best: str) -> None:
    name = ask("chainHead_v1_follow", False)
    told()
    request = {"jsonrpc": "2.0", "id": 1, "method": "chainHead_v1_header", "params": [name, best]}
    answer = asyncio.run(face.relay.answer(json.dumps(request), RpcSession()))
    assert answer is not None
    assert json.loads(answer)["result"] is None


@pytest.mark.parametrize(
    ("items", "place"),
    [([1], "items[0]"), ([{"type": "value"}], "items[0].key"), ([{"key": "0x", "type": "all"}], "items[0].type")],
)
def test_wrong_queries_are_refused_by_place(ask: Ask, follow: str, best: str, items: list[Any], place: str) -> None:
    code, _, data = ask("chainHead_v1_storage", follow, best, items)
    assert code == -32602
    assert data.startswith(place)


def test_a_client_that_leaves_is_forgotten(session: RpcSession, follow: str, chain: SmallChain) -> None:
    assert follow in session.kept
    session.close()
    assert not session.kept
    assert chain.new_heads.callbacks == chain.finalized_heads.callbacks == []
