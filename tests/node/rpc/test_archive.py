"""``archive_v1_*``, ``chainSpec_v1_*``, ``transaction_v1_*`` and ``transactionWatch_v1_*``."""

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.rpc import transaction_methods
from relaycast_node.rpc.node_face import DIALECTS, NodeFace
from relaycast_node.rpc.session import ClientOutbox, RpcSession
from relaycast_trie import blake2_256
from relaycast_trie.scale import encode_bytes
from small_chain import SmallChain, SmallLive

Ask = Callable[..., Any]
Told = Callable[[], list[Any]]

CHILD = b"pubsub" + (2000).to_bytes(4, "little")
NOWHERE = f"0x{bytes(32).hex()}"


def hexed(data: bytes) -> str:
    return f"0x{data.hex()}"


def events(told: Told) -> list[Any]:
    return [event for _, _, event in told()]


def test_blocks_are_found_by_height_and_read_by_hash(ask: Ask, chain: SmallChain) -> None:
    assert ask("archive_v1_genesisHash") == ask("chainSpec_v1_genesisHash") == hexed(chain.genesis_hash)
    assert ask("archive_v1_finalizedHeight") == 0
    assert ask("archive_v1_hashByHeight", 1) == [hexed(chain.blocks[1].hash)]
    assert ask("archive_v1_hashByHeight", 9) == []
    assert ask("archive_v1_header", hexed(chain.best.hash)) == hexed(chain.best.header.encode())
    assert ask("archive_v1_header", NOWHERE) is None
    assert ask("archive_v1_body", hexed(chain.best.hash)) == []
    assert ask("archive_v1_body", NOWHERE) is None
    assert ask("chainSpec_v1_chainName") == "Small"
    assert ask("chainSpec_v1_properties")["tokenSymbol"] == "UNIT"


def test_runtime_calls_say_whether_they_succeeded(ask: Ask, chain: SmallChain) -> None:
    best = hexed(chain.best.hash)
    assert ask("archive_v1_call", best, "Metadata_metadata_versions", "0x")["success"] is True
    refused = ask("archive_v1_call", best, "Nothing_like_it", "0x")
    assert refused["success"] is False
    assert "Nothing_like_it" in refused["error"]


def test_storage_comes_item_by_item_with_the_child_trie_named(ask: Ask, told: Told, chain: SmallChain) -> None:
    best = hexed(chain.best.hash)
    ask("archive_v1_storage", best, [{"key": hexed(b"a"), "type": "descendantsHashes"}])
    assert events(told) == [
        {"event": "storage", "key": hexed(b"a1"), "hash": hexed(blake2_256(b"ONE"))},
        {"event": "storage", "key": hexed(b"a2"), "hash": hexed(blake2_256(b"two" * 20))},
        {"event": "storageDone"},
    ]
    ask("archive_v1_storage", best, [{"key": hexed(b"x" * 32), "type": "value"}], hexed(CHILD))
    assert events(told) == [
        {"event": "storage", "key": hexed(b"x" * 32), "value": hexed(b"price"), "childTrieKey": hexed(CHILD)},
        {"event": "storageDone"},
    ]
    ask("archive_v1_storage", NOWHERE, [])
    (error,) = events(told)
    assert error["event"] == "storageError"


def test_a_long_answer_waits_for_a_client_that_reads_slowly() -> None:
    chain = SmallChain({b"key" + number.to_bytes(2, "big"): b"v" for number in range(500)})
    face = NodeFace(SmallLive(chain), version="1")
    session = RpcSession(outbox=ClientOutbox(messages=8))

    async def read() -> list[Any]:
        params = [hexed(chain.best.hash), [{"key": "0x", "type": "descendantsValues"}]]
        request = {"jsonrpc": "2.0", "id": 1, "method": "archive_v1_storage", "params": params}
        await face.relay.receive(json.dumps(request), session)
        found: list[Any] = []
        most = 0
        while not found or found[-1].get("event") != "storageDone":
            most = max(most, len(session.outbox))
            message = await session.outbox.get()
            assert message is not None
            found.append(json.loads(message).get("params", {}).get("result", {}))
        assert most <= 8
        return found

    found = asyncio.run(read())
    assert sum(it.get("event") == "storage" for it in found) == 500
    assert not session.outbox.broken


def test_descendants_are_paged_by_the_key_to_start_behind(ask: Ask, told: Told, chain: SmallChain) -> None:
    best = hexed(chain.best.hash)
    query = {"key": hexed(b"a"), "type": "descendantsValues", "paginationStartKey": hexed(b"a1")}
    ask("archive_v1_storage", best, [query])
    assert events(told) == [
        {"event": "storage", "key": hexed(b"a2"), "value": hexed(b"two" * 20)},
        {"event": "storageDone"},
    ]
    ask("archive_v1_storage", best, [{**query, "paginationStartKey": hexed(b"a2")}])
    assert events(told) == [{"event": "storageDone"}]
    paged_child = {"key": "0x", "type": "descendantsHashes", "paginationStartKey": hexed(b"x" * 32)}
    ask("archive_v1_storage", best, [paged_child], hexed(CHILD))
    assert [event.get("key") for event in events(told)] == [hexed(b"y" * 32), None]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"type": "value", "paginationStartKey": "0x61"}, "items[0].type"),
        ({"type": "descendantsValues", "paginationStartKey": "a key"}, "items[0].paginationStartKey"),
    ],
)
def test_a_page_that_cannot_be_is_refused_by_place(
    ask: Ask, session: RpcSession, chain: SmallChain, query: dict[str, str], place: str
) -> None:
    code, _, data = ask("archive_v1_storage", hexed(chain.best.hash), [{"key": "0x61", **query}])
    assert code == -32602
    assert data.startswith(place)
    assert not session.subscriptions


def test_an_answer_that_is_told_to_its_end_counts_no_more(
    ask: Ask, told: Told, chain: SmallChain, session: RpcSession
) -> None:
    """Clients do not end what has said that it is done: the limit of subscriptions would be reached."""
    best = hexed(chain.best.hash)
    for _ in range(3):
        ask("archive_v1_storage", best, [{"key": "0x", "type": "descendantsValues"}])
        ask("archive_v1_storageDiff", best)
        ask("archive_v1_storage", NOWHERE, [])
        assert {it["event"] for it in events(told)} >= {"storageDone", "storageDiffDone", "storageError"}
    assert not session.subscriptions


def test_a_difference_is_ended_by_either_name(ask: Ask, chain: SmallChain, session: RpcSession) -> None:
    """A Substrate node has another name for it than the specification."""
    for name in ("archive_v1_stopStorageDiff", "archive_v1_storageDiff_stopStorageDiff"):
        session.outbox.most_messages = 0  # nothing is sent, so that there is something to end
        subscription = ask("archive_v1_storageDiff", hexed(chain.best.hash))
        assert ask(name, subscription) is True
        assert not session.subscriptions


def test_a_difference_names_what_was_added_modified_and_deleted(ask: Ask, told: Told, chain: SmallChain) -> None:
    block = chain.add({b"a1": b"other", b"a2": None, b"new": b"1"})
    ask("archive_v1_storageDiff", hexed(block.hash), [{"key": "0x", "returnType": "value"}])
    found = {event["key"]: (event["type"], event.get("value")) for event in events(told) if "key" in event}
    assert found == {
        hexed(b"a1"): ("modified", hexed(b"other")),
        hexed(b"a2"): ("deleted", hexed(b"two" * 20)),
        hexed(b"new"): ("added", hexed(b"1")),
    }
    ask(
        "archive_v1_storageDiff",
        hexed(block.hash),
        [{"key": hexed(b"n"), "returnType": "hash"}],
        hexed(chain.genesis_hash),
    )
    assert events(told)[0]["hash"] == hexed(blake2_256(b"1"))
    ask("archive_v1_storageDiff", NOWHERE)
    assert events(told)[0]["event"] == "storageDiffError"


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (1, "items[0]"),
        ({"returnType": []}, "items[0].returnType"),
        ({"returnType": {}}, "items[0].returnType"),
        ({"returnType": None}, "items[0].returnType"),
        ({"key": 1}, "items[0].key"),
        ({"childTrieKey": []}, "items[0].childTrieKey"),
    ],
)
def test_wrong_items_of_a_difference_are_refused_by_place(ask: Ask, chain: SmallChain, item: Any, place: str) -> None:
    code, _, data = ask("archive_v1_storageDiff", hexed(chain.best.hash), [item])
    assert code == -32602
    assert data.startswith((f"{place}:", f"{place} "))


def test_a_broadcast_transaction_is_in_the_pool_until_it_is_included(ask: Ask, chain: SmallChain) -> None:
    transaction = encode_bytes(b"\x04\x00\x00")
    operation = ask("transaction_v1_broadcast", hexed(transaction))
    assert list(chain.pool.waiting) == [extrinsic_hash(transaction)]
    again = ask("transaction_v1_broadcast", hexed(transaction))
    assert chain.new_heads.callbacks  # the second one waits until the pool takes it
    chain.add()
    assert list(chain.pool.waiting) == [extrinsic_hash(transaction)]
    assert chain.new_heads.callbacks == []
    assert ask("transaction_v1_stop", operation) is None
    assert ask("transaction_v1_stop", again) is None
    assert ask("transaction_v1_stop", operation)[0] == -32602


def test_broadcasts_of_a_connection_are_bounded_and_end_with_it(
    ask: Ask, session: RpcSession, chain: SmallChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_methods, "MOST_BROADCASTS", 2)
    transaction = encode_bytes(b"\x04\x00\x00")
    assert ask("transaction_v1_broadcast", hexed(transaction)) is not None
    assert ask("transaction_v1_broadcast", hexed(transaction)) is not None
    assert ask("transaction_v1_broadcast", hexed(transaction)) is None
    session.close()
    assert chain.new_heads.callbacks == []


def test_nothing_is_kept_of_a_broadcast_that_a_client_ended(ask: Ask, session: RpcSession) -> None:
    transaction = hexed(encode_bytes(bytes(100_000)))
    tracemalloc.start()
    for _ in range(50):
        ask("transaction_v1_stop", ask("transaction_v1_broadcast", transaction))
    assert tracemalloc.get_traced_memory()[0] < 1_000_000
    tracemalloc.stop()
    assert session.kept == {}


def test_a_broadcast_over_http_ends_with_its_request(face: NodeFace, chain: SmallChain) -> None:
    transaction = encode_bytes(b"\x04\x00\x00")
    request = {"jsonrpc": "2.0", "id": 1, "method": "transaction_v1_broadcast", "params": [hexed(transaction)]}
    for _ in range(3):  # the pool takes the first one, and refuses it afterwards
        session = RpcSession(subscribes=False)
        answer = asyncio.run(face.relay.answer(json.dumps(request), session))
        assert answer is not None
        assert isinstance(json.loads(answer)["result"], str)
        assert not session.kept
    assert list(chain.pool.waiting) == [extrinsic_hash(transaction)]
    assert chain.new_heads.callbacks == []


def test_a_watched_transaction_is_told_of_until_it_is_final(ask: Ask, told: Told, chain: SmallChain) -> None:
    ask("transactionWatch_v1_submitAndWatch", hexed(encode_bytes(b"\x04\x00\x00")))
    assert events(told) == [{"event": "validated"}]
    block = chain.add()
    assert events(told) == [{"event": "bestChainBlockIncluded", "block": {"hash": hexed(block.hash), "index": 0}}]
    chain.add()
    chain.add()
    assert events(told) == [{"event": "finalized", "block": {"hash": hexed(block.hash), "index": 0}}]
    ask("transactionWatch_v1_submitAndWatch", "0x1234")
    (invalid,) = events(told)
    assert invalid["event"] == "invalid"


def test_a_watched_transaction_is_told_of_no_more_after_its_last_event(
    ask: Ask, told: Told, chain: SmallChain, session: RpcSession
) -> None:
    transaction = hexed(encode_bytes(b"\x04\x00\x00"))
    ask("transactionWatch_v1_submitAndWatch", transaction)
    ask("transactionWatch_v1_submitAndWatch", transaction)  # it is in the pool already
    assert [event["event"] for event in events(told)] == ["validated", "invalid"]
    assert len(session.subscriptions) == 1
    for _ in range(3):
        chain.add()
    assert [event["event"] for event in events(told)] == ["bestChainBlockIncluded", "finalized"]
    assert not session.subscriptions


def test_what_was_told_to_its_end_takes_no_subscription(
    ask: Ask, told: Told, chain: SmallChain, session: RpcSession
) -> None:
    best = hexed(chain.best.hash)
    ask("transactionWatch_v1_submitAndWatch", hexed(encode_bytes(b"\x04\x00\x00")))
    assert len(session.subscriptions) == 1
    for _ in range(3):
        chain.add()
    ask("transactionWatch_v1_submitAndWatch", "0x1234")
    ask("archive_v1_storage", best, [{"key": "0x", "type": "value"}])
    ask("archive_v1_storageDiff", best)
    endings = [it["event"] for it in events(told) if it["event"] not in {"storage", "storageDiff"}]
    assert endings == [
        "validated",
        "bestChainBlockIncluded",
        "finalized",
        "invalid",
        "storageDone",
        "storageDiffDone",
    ]
    assert session.subscriptions == {}
    assert chain.pool.watchers._callbacks == {}


@pytest.mark.parametrize(
    ("dialect", "there", "missing"),
    [
        ("new", "chainHead_v1_follow", "state_getStorage"),
        ("legacy", "state_getStorage", "chainHead_v1_follow"),
    ],
)
def test_a_dialect_can_be_served_alone(chain: SmallChain, dialect: str, there: str, missing: str) -> None:
    names = NodeFace(SmallLive(chain), version="1", dialect=dialect).table.names
    assert there in names
    assert missing not in names
    assert {"rpc_methods", "dev_newBlock"} <= set(names)
    assert set(DIALECTS) == {"all", "legacy", "new"}
