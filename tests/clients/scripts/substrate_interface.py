"""Uses a served network as somebody with substrate-interface does: URL, and URL_THAT_CAN_BE_CUT.

Run as a module, with the folder of tests on the path: ``python -m clients.scripts.substrate_interface``.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from substrateinterface import ExtrinsicReceipt, Keypair, KeypairType, SubstrateInterface
from substrateinterface.exceptions import SubstrateRequestException
from websocket import WebSocketConnectionClosedException

from clients.scripts.items import (
    DOT,
    KEY,
    MARKER,
    NEWCOMER,
    PUBLISHER,
    READER,
    Facts,
    ask_for_a_cut,
    ask_for_a_restart,
    child_key,
    do,
)

URL, CUTTABLE = sys.argv[1:]
relay = SubstrateInterface(url=URL)
newcomer, reader = (SubstrateInterface(url=f"{URL}/para/{it}") for it in (NEWCOMER, READER))
alice, bob, charlie, dave = (Keypair.create_from_uri(f"//{name}") for name in ("Alice", "Bob", "Charlie", "Dave"))


def result_of(chain: SubstrateInterface, method: str, *params: object) -> Any:
    return chain.rpc_request(method, list(params))["result"]


def send(chain: SubstrateInterface, signer: Keypair, pallet: str, name: str, /, **params: Any) -> ExtrinsicReceipt:
    call = chain.compose_call(pallet, name, params)
    return submit(chain, chain.create_signed_extrinsic(call, signer))


def submit(chain: SubstrateInterface, extrinsic: Any) -> ExtrinsicReceipt:
    return chain.submit_extrinsic(extrinsic, wait_for_inclusion=True)


def shown(record: Any) -> Facts:
    event = getattr(record, "value", record)["event"]
    return {"name": f"{event['module_id']}.{event['event_id']}", "fields": event["attributes"]}


def events_of(receipt: ExtrinsicReceipt) -> list[Facts]:
    return [shown(record) for record in receipt.triggered_events]


def account(who: Keypair) -> Any:
    return relay.query("System", "Account", [who.ss58_address]).value


def eventually(chain: SubstrateInterface, first: int, wanted: Callable[[Facts], bool]) -> tuple[Facts, str]:
    """Return the first event that is wanted, from block ``first`` on, and its block's hash."""
    number = first
    while True:
        at = chain.get_block_hash(number)
        if at is None:
            time.sleep(0.1)
            continue
        for record in chain.get_events(at):
            if wanted(event := shown(record)):
                return event, at
        number += 1


def connect() -> Facts:
    return {
        "chain": relay.chain,
        "genesis": relay.get_block_hash(0),
        "spec_name": result_of(relay, "state_getRuntimeVersion")["specName"],
        "ss58": relay.ss58_format,
        "parachains": [chain.get_block_hash(0) for chain in (newcomer, reader)],
    }


def metadata() -> Facts:
    def pallets(chain: SubstrateInterface) -> list[str]:
        return [pallet.name for pallet in chain.get_metadata().pallets]

    return {"version": 14, "relay": pallets(relay), "parachain": pallets(reader)}


def head() -> Facts:
    at = relay.get_chain_head()
    who = relay.query("System", "Account", [bob.ss58_address], block_hash=at).value
    return {
        "at": at,
        "header_number": relay.get_block_header(at)["header"]["number"],
        "number": relay.query("System", "Number", block_hash=at).value,
        "timestamp": relay.query("Timestamp", "Now", block_hash=at).value,
        "free": who["data"]["free"],
        "nonce": who["nonce"],
    }


def past() -> Facts:
    number = relay.get_block_number(None) - 2
    at = relay.get_block_hash(number)
    return {
        "at": at,
        "header_number": number,
        "number": relay.query("System", "Number", block_hash=at).value,
        "parent": relay.query("System", "ParentHash", block_hash=at).value,
    }


def paged_keys() -> Facts:
    prefix = relay.generate_storage_hash("System", "Account")
    pages: list[list[str]] = []
    start = None
    while not pages or len(pages[-1]) == 5:
        pages.append(result_of(relay, "state_getKeysPaged", prefix, 5, *([start] if start else [])))
        start = pages[-1][-1] if pages[-1] else None
    who, info = next(iter(relay.query_map("System", "Account", page_size=1)))
    return {"pages": pages, "first_account": who.value, "first_free": info.value["data"]["free"]}


def storage_subscription() -> Facts:
    numbers: list[int] = []

    def take(obj: Any, _: int, __: str) -> bool | None:
        numbers.append(obj.value)
        return True if len(numbers) == 4 else None

    relay.query("System", "Number", subscription_handler=take)
    return {"numbers": numbers}


def head_subscription() -> Facts:
    heads: list[Facts] = []
    finalized: list[int] = []

    def take(obj: Any, _: int, __: str) -> bool | None:
        heads.append({"number": obj["header"]["number"], "parent": obj["header"]["parentHash"]})
        return True if len(heads) == 4 else None

    def take_finalized(obj: Any, _: int, __: str) -> bool | None:
        finalized.append(obj["header"]["number"])
        return True if len(finalized) == 3 else None

    relay.subscribe_block_headers(take)
    relay.subscribe_block_headers(take_finalized, finalized_only=True)
    hashes = [relay.get_block_hash(head["number"]) for head in heads]
    return {
        "heads": [{**head, "hash": found} for head, found in zip(heads, hashes, strict=True)],
        "finalized": finalized,
    }


def block() -> Facts:
    def calls(found: Any) -> list[Facts]:
        return [extrinsic.value["call"] for extrinsic in found["extrinsics"]]

    def named(call: Facts) -> str:
        return f"{call['call_module']}.{call['call_function']}"

    inner = calls(reader.get_block())
    (given,) = (call["call_args"][0]["value"] for call in inner if call["call_function"] == "set_validation_data")
    return {
        "relay": [named(call) for call in calls(relay.get_block())],
        "parachain": [named(call) for call in inner],
        "relay_parent_number": given["validation_data"]["relay_parent_number"],
        "relay_parent_storage_root": given["validation_data"]["relay_parent_storage_root"],
        "nodes": given["relay_chain_state"]["trie_nodes"],
    }


def child_storage() -> Facts:
    at, child = relay.get_chain_head(), child_key(PUBLISHER)
    keys = result_of(relay, "childstate_getKeys", child, "0x", at)
    return {
        "at": at,
        "keys": keys,
        "second_page": result_of(relay, "childstate_getKeysPaged", child, "0x", 7, keys[6], at),
        "value": result_of(relay, "childstate_getStorage", child, keys[0], at),
        "size": result_of(relay, "childstate_getStorageSize", child, keys[0], at),
        "hash": result_of(relay, "childstate_getStorageHash", child, keys[0], at),
    }


def child_proof() -> Facts:
    at, child = relay.get_chain_head(), child_key(PUBLISHER)
    key = result_of(relay, "childstate_getKeys", child, "0x", at)[0]
    proof = result_of(relay, "state_getChildReadProof", child, [key], at)
    return {
        "at": at,
        "proved_at": proof["at"],
        "state_root": relay.get_block_header(at)["header"]["stateRoot"],
        "child_key": child,
        "key": key,
        "value": result_of(relay, "childstate_getStorage", child, key, at),
        "nodes": proof["proof"],
        "top_nodes": result_of(relay, "state_getReadProof", [child], at)["proof"],
    }


def transfer() -> Facts:
    fresh = Keypair.create_from_uri("//substrate-interface")
    params = {"dest": fresh.ss58_address, "value": 5 * DOT}
    before = account(alice)
    call = relay.compose_call("Balances", "transfer_keep_alive", params)
    predicted = relay.get_payment_info(call, alice)["partialFee"]
    receipt = send(relay, alice, "Balances", "transfer_keep_alive", **params)
    after = account(alice)
    assert receipt.is_success
    return {
        "block": receipt.block_hash,
        "amount": 5 * DOT,
        "events": events_of(receipt),
        "before": before["data"]["free"],
        "after": after["data"]["free"],
        "nonces": [before["nonce"], after["nonce"]],
        "received": account(fresh)["data"]["free"],
        "predicted_fee": predicted,
        "paid_fee": receipt.total_fee_amount,
    }


def other_signatures() -> Facts:
    other = Keypair.create_from_seed(f"0x{'42' * 32}", crypto_type=KeypairType.ED25519)
    send(relay, alice, "Balances", "transfer_keep_alive", dest=other.ss58_address, value=3 * DOT)
    receipt = send(relay, other, "Balances", "transfer_keep_alive", dest=alice.ss58_address, value=DOT)
    return {"events": {"ed25519": events_of(receipt)}}


def register() -> Facts:
    receipt = send(relay, bob, "Broadcaster", "register_publisher", para_id=NEWCOMER)
    info = relay.query("Broadcaster", "RegisteredPublishers", [NEWCOMER]).value
    return {
        "events": events_of(receipt),
        "manager": info["manager"],
        "deposit": info["deposit"],
        "constant": relay.get_constant("Broadcaster", "PublisherDeposit").value,
        "reserved": account(bob)["data"]["reserved"],
    }


def failing_call() -> Facts:
    before = account(bob)
    receipt = send(relay, bob, "Broadcaster", "register_publisher", para_id=NEWCOMER)
    after = account(bob)
    assert not receipt.is_success
    error = receipt.error_message
    return {
        "events": events_of(receipt),
        "name": f"Broadcaster.{error['name']}",
        "docs": " ".join(error["docs"]),
        "paid": before["data"]["free"] - after["data"]["free"],
        "nonces": [before["nonce"], after["nonce"]],
    }


def subscribe() -> Facts:
    call = reader.compose_call("Subscriber", "subscribe", {"publisher": NEWCOMER, "keys": [KEY]})
    return {"events": events_of(send(reader, alice, "Sudo", "sudo", call=call))}


def publish() -> Facts:
    value = f"0x{'ab' * 21}"
    first = relay.get_block_number(None)
    receipt = send(newcomer, alice, "Publisher", "publish", items=[(KEY, value, 100)])
    event, at = eventually(
        relay,
        first,
        lambda event: event["name"] == "Broadcaster.DataPublished" and event["fields"]["publisher"] == NEWCOMER,
    )
    entry = result_of(relay, "childstate_getStorage", child_key(NEWCOMER), KEY, at)
    return {"events": events_of(receipt), "told": event, "key": KEY, "value": value, "ttl": 100, "entry": entry}


def callback() -> Facts:
    first = reader.get_block_number(None)
    send(newcomer, alice, "Publisher", "publish", items=[(KEY, f"0x{'cd' * 40}", 0)])
    event, _ = eventually(
        reader,
        first,
        lambda event: event["name"] == "Subscriber.DataProcessed" and event["fields"]["value_size"] == 40,
    )
    return {"key": KEY, "told": event}


def refusal(chain: SubstrateInterface, extrinsic: Any) -> Facts:
    try:
        submit(chain, extrinsic)
    except SubstrateRequestException as refused:
        return dict(refused.args[0])
    raise AssertionError("nothing was refused")


def nonces() -> Facts:
    nonce = relay.get_account_nonce(charlie.ss58_address)
    sooner, later, stale = (
        relay.create_signed_extrinsic(
            relay.compose_call("System", "remark_with_event", {"remark": text}), charlie, nonce=nonce + ahead
        )
        for text, ahead in (("sooner", 0), ("later", 1), ("stale", 0))
    )
    relay.submit_extrinsic(later)
    time.sleep(1.2)
    waiting = len(relay.retrieve_pending_extrinsics())
    first = submit(relay, sooner)
    later_hash = f"0x{later.extrinsic_hash.hex()}"
    number = relay.get_block_number(first.block_hash)
    _, second = eventually(
        relay,
        number,
        lambda event: event["name"] == "System.Remarked" and event["fields"]["hash"] != first_hash(first),
    )
    assert later_hash in {
        f"0x{e.extrinsic_hash.hex()}" for e in relay.get_block(second)["extrinsics"] if e.extrinsic_hash
    }
    return {
        "waiting": waiting,
        "blocks": [first.block_hash, second],
        "nonces": [nonce, relay.get_account_nonce(charlie.ss58_address)],
        "stale": refusal(relay, stale),
    }


def first_hash(receipt: ExtrinsicReceipt) -> str:
    (found,) = (event["fields"]["hash"] for event in events_of(receipt) if event["name"] == "System.Remarked")
    return str(found)


def mortality() -> Facts:
    call = relay.compose_call("System", "remark", {"remark": "mortal"})
    mortal = submit(relay, relay.create_signed_extrinsic(call, dave, era={"period": 16}))
    immortal = submit(relay, relay.create_signed_extrinsic(call, dave))
    while (number := relay.get_block_number(None)) < 12:
        time.sleep(0.5)
    expired = relay.create_signed_extrinsic(call, dave, era={"period": 4, "current": number - 8})
    return {
        "blocks": [mortal.block_hash, immortal.block_hash],
        "eras": [receipt.extrinsic.value["era"] for receipt in (mortal, immortal)],
        "expired": refusal(relay, expired),
    }


def bad_signature() -> Facts:
    call = relay.compose_call("System", "remark", {"remark": "forged"})
    return refusal(relay, relay.create_signed_extrinsic(call, dave, signature=f"0x{'11' * 64}"))


def sudo() -> Facts:
    call = relay.compose_call("Broadcaster", "force_deregister_publisher", {"para_id": NEWCOMER})
    receipt = send(relay, alice, "Sudo", "sudo", call=call)
    refused = send(relay, bob, "Sudo", "sudo", call=call)
    return {
        "events": events_of(receipt),
        "left": relay.query("Broadcaster", "RegisteredPublishers", [NEWCOMER]).value is not None,
        "refused": events_of(refused),
    }


def fork() -> Facts:
    result_of(relay, "dev_setBlockTime", "manual")
    try:
        parent = relay.get_block_hash()
        call = relay.compose_call("System", "remark", {"remark": MARKER})
        sent = relay.submit_extrinsic(relay.create_signed_extrinsic(call, dave)).extrinsic_hash
        first = result_of(relay, "dev_newBlock")
        result_of(relay, "dev_setHead", parent)
        result_of(relay, "dev_setStorage", [[MARKER, "0x01"]])
        second = result_of(relay, "dev_newBlock")
        blocks = [
            at
            for at in (first, second)
            if sent in {f"0x{it.extrinsic_hash.hex()}" for it in relay.get_block(at)["extrinsics"] if it.extrinsic_hash}
        ]
        markers = [result_of(relay, "state_getStorage", MARKER, at) for at in (first, second)]
        return {"first": first, "second": second, "blocks": blocks, "markers": markers}
    finally:
        result_of(relay, "dev_setBlockTime", "500ms")


def reconnection() -> Facts:
    with SubstrateInterface(url=CUTTABLE) as chain:
        before = [chain.query("System", "Number").value]
        ask_for_a_cut()
        time.sleep(2)
        with suppress(WebSocketConnectionClosedException):  # the client notices with this request, and loses it
            chain.query("System", "Number")
        after = [chain.query("System", "Number").value, chain.query("System", "Number").value]
        return {"before": before, "after": after, "number": after[-1]}


def restart() -> Facts:
    blocks: list[str | None] = []
    seen: list[Facts] = []

    def change(chain: SubstrateInterface) -> None:
        blocks.append(send(chain, charlie, "System", "remark", remark=MARKER).block_hash)

    def look(chain: SubstrateInterface) -> None:
        nonce = result_of(chain, "system_accountNextIndex", charlie.ss58_address)
        seen.append({"genesis": chain.get_block_hash(0), "nonce": nonce})

    change(relay)
    look(relay)
    ask_for_a_restart()
    with SubstrateInterface(url=URL) as chain:
        look(chain)
        change(chain)
        look(chain)
    return {"blocks": blocks, "seen": seen}


do(
    [
        ("connect", connect),
        ("metadata", metadata),
        ("head", head),
        ("past", past),
        ("paged keys", paged_keys),
        ("storage subscription", storage_subscription),
        ("head subscription", head_subscription),
        ("block", block),
        ("child storage", child_storage),
        ("child proof", child_proof),
        ("transfer", transfer),
        ("other signatures", other_signatures),
        ("register", register),
        ("failing call", failing_call),
        ("subscribe", subscribe),
        ("publish", publish),
        ("callback", callback),
        ("nonces", nonces),
        ("mortality", mortality),
        ("bad signature", bad_signature),
        ("sudo", sudo),
        ("fork", fork),
        ("reconnection", reconnection),
        ("restart", restart),
    ]
)
