"""What every client does with a served network; each client's module runs these tests over what its script said.

A script's word is compared with plain requests to the same network, with the pallets' own decoders, and with proofs
that ``relaycast proof verify`` and an independent implementation check.
"""

import json
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from clients.conversation import PEERS, Facts, Said
from clients.served import Served
from peers import missing
from relaycast.cli.command import execute
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_trie.hasher import blake2_256
from rooms import ROOT

PUBLISHER, READER, NEWCOMER = 2000, 3000, 3001
DOT = 10_000_000_000
BOB = "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"
ORACLE = "@acala-network/chopsticks-executor"


class WholeList:
    """The list; a client that lacks an item says so in its own class, with the reason."""

    def test_it_connects(self, said: Said, served: Served) -> None:
        seen = said("connect")
        assert seen["chain"] == served.ask("system_chain")
        assert seen["genesis"] == served.ask("chain_getBlockHash", 0)
        assert seen["spec_name"] == served.ask("state_getRuntimeVersion")["specName"]
        assert seen["ss58"] == 42
        genesis = [served.ask("chain_getBlockHash", 0, para=it) for it in (NEWCOMER, READER)]
        assert seen["parachains"] == genesis

    def test_it_reads_the_metadata(self, said: Said) -> None:
        seen = said("metadata")
        assert {"System", "Timestamp", "Balances", "Sudo", "Paras", "Broadcaster"} <= set(seen["relay"])
        assert {"System", "ParachainSystem", "Subscriber", "Publisher"} <= set(seen["parachain"])

    def test_it_reads_the_head(self, said: Said, served: Served) -> None:
        seen = said("head")
        assert seen["number"] == seen["header_number"] == height(served, seen["at"])
        assert number(seen["free"]) > 0
        assert number(seen["timestamp"]) > 1_500_000_000_000

    def test_it_reads_a_past_block(self, said: Said, served: Served) -> None:
        seen = said("past")
        assert seen["number"] == seen["header_number"] == height(served, seen["at"])
        assert seen["parent"] == served.ask("chain_getHeader", seen["at"])["parentHash"]

    def test_it_pages_through_keys(self, said: Said) -> None:
        seen = said("paged keys")
        keys = [key for page in seen["pages"] for key in page]
        assert len(seen["pages"]) > 1
        assert all(len(page) == 5 for page in seen["pages"][:-1])
        assert keys == sorted(set(keys))
        assert len(keys) >= 6
        assert number(seen["first_free"]) > 0

    def test_it_follows_a_storage_item(self, said: Said) -> None:
        numbers = said("storage subscription")["numbers"]
        assert len(numbers) == 4
        assert numbers == sorted(set(numbers))

    def test_it_follows_heads(self, said: Said, served: Served) -> None:
        seen = said("head subscription")
        heads = seen["heads"]
        first = heads[0]["number"]
        assert [head["number"] for head in heads] == list(range(first, first + len(heads)))
        assert [head["parent"] for head in heads[1:]] == [head["hash"] for head in heads[:-1]]
        assert all(served.ask("chain_getBlockHash", head["number"]) == head["hash"] for head in heads)
        finalized = seen["finalized"]
        assert finalized == list(range(finalized[0], finalized[0] + len(finalized)))

    def test_it_takes_a_parachain_block_apart(self, said: Said, served: Served, tmp_path: Path) -> None:
        """The body's relay proof shows the publisher's child trie under the root of the relay parent."""
        seen = said("block")
        assert seen["relay"][0].lower() == "timestamp.set"
        assert "timestamp.set" in {name.lower() for name in seen["parachain"]}
        parent = served.ask("chain_getBlockHash", seen["relay_parent_number"])
        root = seen["relay_parent_storage_root"]
        assert served.ask("chain_getHeader", parent)["stateRoot"] == root
        child = child_key(PUBLISHER)
        assert proved(tmp_path, root, child, seen["nodes"]) == served.ask("state_getStorage", child, parent)

    def test_it_reads_child_storage(self, said: Said, served: Served) -> None:
        seen = said("child storage")
        assert len(seen["keys"]) >= 50
        assert seen["second_page"] == seen["keys"][7:14]
        assert seen["value"] == served.ask("childstate_getStorage", child_key(PUBLISHER), seen["keys"][0], seen["at"])
        value = bytes.fromhex(seen["value"][2:])
        assert len(PublishedEntry.decode(value).value) == 16
        assert seen["size"] == len(value)
        assert seen["hash"] == f"0x{blake2_256(value).hex()}"

    def test_its_child_proof_holds(self, said: Said, tmp_path: Path) -> None:
        seen = said("child proof")
        assert seen["proved_at"] == seen["at"]
        child_root = proved(tmp_path, seen["state_root"], seen["child_key"], seen["nodes"])
        assert child_root == proved(tmp_path, seen["state_root"], seen["child_key"], seen["top_nodes"])
        assert proved(tmp_path, child_root, seen["key"], seen["nodes"]) == seen["value"]

    def test_an_independent_decoder_reads_its_child_proof(self, said: Said) -> None:
        seen = said("child proof")
        top = decoded(seen["state_root"], seen["nodes"])
        assert set(top) == {seen["child_key"]}
        in_child = [node for node in seen["nodes"] if node not in seen["top_nodes"]]
        assert decoded(top[seen["child_key"]], in_child)[seen["key"]] == seen["value"]

    def test_it_transfers(self, said: Said) -> None:
        seen = said("transfer")
        events = seen["events"]
        names = [event["name"] for event in events]
        assert names[0] == "Balances.Withdraw"
        assert names[-1] == "System.ExtrinsicSuccess"
        in_order(
            names,
            ["System.NewAccount", "Balances.Endowed", "Balances.Transfer", "TransactionPayment.TransactionFeePaid"],
        )
        fee = number(field(events, "TransactionPayment.TransactionFeePaid", "actual_fee"))
        assert number(seen["before"]) - number(seen["after"]) == 5 * DOT + fee
        assert number(seen["received"]) == 5 * DOT
        assert seen["nonces"][1] == seen["nonces"][0] + 1
        assert number(seen["predicted_fee"]) == fee

    def test_other_kinds_of_signatures_are_taken(self, said: Said) -> None:
        for events in said("other signatures")["events"].values():
            assert events[-1]["name"] == "System.ExtrinsicSuccess"

    def test_it_registers_a_publisher(self, said: Said) -> None:
        seen = said("register")
        assert field(seen["events"], "Broadcaster.PublisherRegistered", "para_id") == NEWCOMER
        assert field(seen["events"], "Broadcaster.PublisherRegistered", "manager") == BOB
        assert seen["manager"] == BOB
        assert number(seen["deposit"]) == number(seen["constant"]) > 0
        assert number(seen["reserved"]) == number(seen["deposit"])

    def test_a_failing_call_tells_its_error_by_name(self, said: Said) -> None:
        seen = said("failing call")
        assert seen["name"] == "Broadcaster.AlreadyRegistered"
        assert seen.get("docs") != ""
        assert seen["events"][-1]["name"] == "System.ExtrinsicFailed"
        paid = number(field(seen["events"], "TransactionPayment.TransactionFeePaid", "actual_fee"))
        assert number(seen["paid"]) == paid > 0
        assert seen["nonces"][1] == seen["nonces"][0] + 1

    def test_it_subscribes(self, said: Said) -> None:
        events = said("subscribe")["events"]
        assert field(events, "Subscriber.KeysSubscribed", "publisher") == NEWCOMER
        assert events[-1]["name"] == "System.ExtrinsicSuccess"

    def test_it_publishes(self, said: Said) -> None:
        seen = said("publish")
        assert seen["events"][-1]["name"] == "System.ExtrinsicSuccess"
        assert seen["told"]["fields"]["publisher"] == NEWCOMER
        assert hexadecimal(seen["told"]["fields"]["key"]) == seen["key"]
        entry = PublishedEntry.decode(bytes.fromhex(seen["entry"][2:]))
        assert (f"0x{entry.value.hex()}", entry.ttl) == (seen["value"], seen["ttl"])

    def test_it_sees_the_callback(self, said: Said) -> None:
        seen = said("callback")
        told = [seen["told"]]
        assert field(told, "Subscriber.DataProcessed", "publisher") == NEWCOMER
        assert hexadecimal(field(told, "Subscriber.DataProcessed", "key")) == seen["key"]
        assert field(told, "Subscriber.DataProcessed", "value_size") == 40

    def test_a_nonce_ahead_waits_for_the_one_before_it(self, said: Said, served: Served) -> None:
        seen = said("nonces")
        assert seen["waiting"] == 0, "extrinsics that are not ready are not pending"
        first, second = (height(served, block) for block in seen["blocks"])
        assert first <= second
        assert seen["nonces"][1] == seen["nonces"][0] + 2

    def test_a_nonce_that_was_used_is_refused(self, said: Said) -> None:
        self.refused(said("nonces")["stale"], "Stale", "Transaction is outdated")

    def test_an_era_that_is_over_is_refused(self, said: Said) -> None:
        """As on every Substrate chain: the era is read as a later one, whose birth block was not the one signed."""
        seen = said("mortality")
        assert len(seen["blocks"]) == 2
        self.refused(seen["expired"], "BadProof", "Transaction has a bad signature")

    def test_a_signature_that_does_not_hold_is_refused(self, said: Said) -> None:
        self.refused(said("bad signature"), "BadProof", "Transaction has a bad signature")

    def refused(self, seen: Facts, variant: str, text: str) -> None:
        """Assert that a transaction was refused as Substrate does, with its code and ``text``; or named ``variant``."""
        assert variant
        assert seen["code"] == 1010
        assert text in f"{seen['message']} {seen['data']}"

    def test_sudo_is_root_for_its_key_alone(self, said: Said) -> None:
        seen = said("sudo")
        assert field(seen["events"], "Broadcaster.PublisherDeregistered", "para_id") == NEWCOMER
        assert "Sudo.Sudid" in {event["name"] for event in seen["events"]}
        assert not seen["left"]
        assert seen["refused"][-1]["name"] == "System.ExtrinsicFailed"

    def test_it_sees_a_fork(self, said: Said, served: Served) -> None:
        """A transaction's block is lost, and the transaction comes again in the block that took its place."""
        seen = said("fork")
        first, second = seen["first"], seen["second"]
        assert first != second
        assert height(served, first) == height(served, second)
        assert served.ask("chain_getBlockHash", height(served, second)) == second
        assert seen["blocks"] == [first, second]
        assert seen["markers"] == [None, "0x01"]

    def test_it_comes_back_after_a_cut(self, said: Said) -> None:
        seen = said("reconnection")
        assert seen["before"]
        assert seen["after"]
        assert number(seen["number"]) >= seen["after"][-1] - 1
        assert seen["after"][-1] > seen["before"][-1]

    def test_it_goes_on_after_the_server_was_killed(self, said: Said, served: Served) -> None:
        """All tests here look at the chains as they are after that."""
        seen = said("restart")
        before, after, later = seen["seen"]
        assert before == after == {**later, "nonce": later["nonce"] - 1}
        first, second = (height(served, block) for block in seen["blocks"])
        assert first < second


def number(told: Any) -> int:
    """Return a number that a client shows as such, in decimal or hexadecimal digits, or with separators."""
    return int(told.replace(",", ""), 0) if isinstance(told, str) else int(told)


def hexadecimal(told: Any) -> str:
    return told if isinstance(told, str) else f"0x{bytes(told).hex()}"


def height(served: Served, block: str) -> int:
    return int(served.ask("chain_getHeader", block)["number"], 16)


def field(events: list[Facts], name: str, wanted: str) -> Any:
    """Return a field of the one event of that name, however a client spells fields."""
    (found,) = (event["fields"] for event in events if event["name"] == name)
    spelled = {key.replace("_", "").lower(): value for key, value in found.items()}
    return spelled[wanted.replace("_", "")]


def in_order(names: list[str], wanted: list[str]) -> None:
    rest = iter(names)
    assert all(name in rest for name in wanted), f"{wanted} do not follow one another in {names}"


def child_key(para_id: int) -> str:
    return f"0x{(b':child_storage:default:pubsub' + para_id.to_bytes(4, 'little')).hex()}"


def proved(folder: Path, root: str, key: str, nodes: list[str]) -> str:
    """Return the value that ``relaycast proof verify`` finds under ``key``."""
    file = folder / "proof.json"
    file.write_text(json.dumps({"nodes": nodes}))
    printed = StringIO()
    with redirect_stdout(printed):
        code = execute(["proof", "verify", "--root", root, "--key", key, str(file)])
    assert code == 0, printed.getvalue()
    value: str = json.loads(printed.getvalue())["values"][key]
    return value


def decoded(root: str, nodes: list[str]) -> dict[str, str]:
    """Return the entries that chopsticks-executor's ``decode_proof`` finds in a proof."""
    folder = PEERS / "oracle"
    if not (folder / "node_modules" / ORACLE).is_dir():
        missing(f"{ORACLE} is not in .peers/oracle: .ci/peers installs it")
    script = ROOT / "tests" / "trie" / "oracle.mjs"
    ended = subprocess.run(
        ["node", script, folder],
        input=json.dumps([{"root": root, "nodes": nodes}]),
        capture_output=True,
        text=True,
        check=True,
    )
    (answer,) = json.loads(ended.stdout)
    assert "error" not in answer, answer["error"]
    return dict(answer["entries"])
