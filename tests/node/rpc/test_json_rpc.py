"""JSON-RPC 2.0: what is answered, and with which error."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.rpc import json_rpc
from relaycast_node.rpc.node_face import NodeFace

Send = Callable[[str | bytes], Any]


def request(method: str, number: object = 1, params: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or []}


@pytest.mark.parametrize("number", [0, 1, 2**53, "7", "", "ab-c", None])
def test_the_id_comes_back_as_it_was(raw: Send, number: object) -> None:
    assert raw(json.dumps(request("system_name", number))) == {"jsonrpc": "2.0", "id": number, "result": "relaycast"}


@pytest.mark.parametrize(
    ("message", "code", "number"),
    [
        ("", -32700, None),
        ("{", -32700, None),
        ('{"jsonrpc":"2.0","id":1,"method":"system_name"', -32700, None),
        ("[1,", -32700, None),
        (b"\xff\xfe", -32700, None),
        ("[" * 100_000, -32700, None),
        ('{"a":' * 100_000, -32700, None),
        ('{"jsonrpc":"2.0","id":1,"method":"a","params":' + "[" * 100_000, -32700, None),
        ("[]", -32600, None),
        ("1", -32600, None),
        ('"system_name"', -32600, None),
        ("null", -32600, None),
        ("{}", -32600, None),
        ('{"jsonrpc":"2.0","id":5}', -32600, 5),
        ('{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
        ('{"jsonrpc":"2.0","id":"x","method":"system_name","params":3}', -32600, "x"),
        ('{"jsonrpc":"2.0","id":[1],"method":"system_name"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1.5,"method":"system_name"}', -32600, None),
        ('{"jsonrpc":"1.0","id":5,"method":"system_name"}', -32600, 5),
        ('{"id":5,"method":"system_name"}', -32600, 5),
    ],
)
def test_what_is_no_request_is_refused(raw: Send, message: str | bytes, code: int, number: object) -> None:
    answer = raw(message)
    assert (answer["error"]["code"], answer["id"]) == (code, number)


def test_a_request_without_an_id_is_not_answered(raw: Send) -> None:
    assert raw('{"jsonrpc":"2.0","method":"system_name"}') is None
    assert raw('[{"jsonrpc":"2.0","method":"system_name"}]') is None


def test_an_unknown_method_names_the_nearest_one(raw: Send) -> None:
    error = raw(json.dumps(request("chain_getHeadr")))["error"]
    assert error == {
        "code": -32601,
        "message": "Method not found",
        "data": "'chain_getHeadr': did you mean chain_getHeader?",
    }


def test_a_batch_is_answered_in_order_without_its_notifications(raw: Send) -> None:
    batch = [
        request("system_chain", "a"),
        {"jsonrpc": "2.0", "method": "system_chain"},
        7,
        request("nothing", 3),
        request("system_version", 4),
    ]
    answers = raw(json.dumps(batch))
    assert [answer["id"] for answer in answers] == ["a", None, 3, 4]
    assert [answer.get("result") for answer in answers] == ["Small", None, None, "1.2.3"]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32600, -32601]


def test_a_batch_has_a_limit(raw: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "MOST_BATCH", 3)
    assert len(raw(json.dumps([request("system_name")] * 3))) == 3
    error = raw(json.dumps([request("system_name")] * 4))["error"]
    assert error == {
        "code": -32010,
        "message": "The batch request was too large",
        "data": "Exceeded max limit of 3",
    }


def test_answers_and_requests_have_a_limit(raw: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "MOST_RESPONSE_BYTES", 100)
    assert raw(json.dumps(request("rpc_methods")))["error"]["code"] == -32008
    assert raw(json.dumps([request("system_name")] * 3))["error"]["code"] == -32011
    monkeypatch.setattr(json_rpc, "MOST_REQUEST_BYTES", 100)
    refused = raw(" " * 101)
    assert (refused["id"], refused["error"]["code"]) == (None, -32007)


@pytest.mark.parametrize(
    ("method", "params", "data"),
    [
        ("state_getStorage", [], "key: got null, expected 0x and an even number of hex digits"),
        ("state_getStorage", ["abc"], "key: got 'abc', expected 0x and an even number of hex digits"),
        ("state_getStorage", ["0xabc"], "key: got '0xabc', expected 0x and an even number of hex digits"),
        ("state_getStorage", ["0x 1 2"], "key: got '0x 1 2', expected 0x and an even number of hex digits"),
        ("state_getStorage", [5], "key: got 5, expected 0x and an even number of hex digits"),
        ("state_getStorage", ["0x", "0x12"], "at: got '0x12', expected a hash: 0x and 64 hex digits"),
        ("state_queryStorageAt", [["0x", True]], "keys[1]: got true, expected 0x and an even number of hex digits"),
        ("state_queryStorageAt", ["0x"], "keys: got '0x', expected a list"),
        (
            "chain_getBlockHash",
            [-1],
            f"number: got -1, expected a list or a number from 0 to {2**64 - 1}, or in hex as 0x...",
        ),
        (
            "chain_getBlockHash",
            [[1.5]],
            f"number[0]: got 1.5, expected a number from 0 to {2**64 - 1}, or in hex as 0x...",
        ),
        (
            "state_getKeysPaged",
            ["0x", "many"],
            f"count: got 'many', expected a number from 0 to {2**32 - 1}, or in hex as 0x...",
        ),
        (
            "system_accountNextIndex",
            ["5Gr"],
            "account: got '5Gr', expected an account: an SS58 address, or 0x and 64 hex digits",
        ),
        ("state_call", [{}, "0x"], "method: got an object of 0 members, expected a text"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_was_expected(
    raw: Send, method: str, params: list[Any], data: str
) -> None:
    answer = raw(json.dumps(request(method, 1, params)))
    assert answer["error"] == {"code": -32602, "message": "Invalid params", "data": data}


def test_parameters_may_come_by_name(raw: Send) -> None:
    by_name = request("state_getKeysPaged", 1, {"prefix": "0x61", "count": "0x1", "startKey": "0x6131"})
    assert raw(json.dumps(by_name))["result"] == ["0x6132"]
    by_name["params"] = {"prefix": "0x61", "count": 1, "start_key": "0x6131"}
    assert raw(json.dumps(by_name))["result"] == ["0x6132"]


def test_parameters_beyond_those_of_a_method_are_passed_over(raw: Send) -> None:
    assert raw(json.dumps(request("system_name", 1, [1, 2, 3])))["result"] == "relaycast"


def test_every_method_of_the_list_can_be_called(raw: Send, face: NodeFace) -> None:
    names = raw(json.dumps(request("rpc_methods")))["result"]["methods"]
    assert names == sorted(names)
    for name in names:
        error = raw(json.dumps(request(name))).get("error", {"code": 0})
        assert error["code"] not in {-32601, -32603}, name
