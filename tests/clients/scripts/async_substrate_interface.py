"""Uses a served network as somebody with async-substrate-interface does: URL, and URL_THAT_CAN_BE_CUT.

Run as a module, with the folder of tests on the path: ``python -m clients.scripts.async_substrate_interface``.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any

from async_substrate_interface import AsyncSubstrateInterface

from clients.scripts.async_user import Pair, User
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
    do_async,
)


async def result_of(chain: Any, method: str, *params: object) -> Any:
    return (await chain.rpc_request(method, list(params)))["result"]


async def send(chain: Any, signer: Pair, pallet: str, name: str, /, **params: Any) -> Any:
    call = await chain.compose_call(pallet, name, params)
    signed = await chain.create_signed_extrinsic(call, signer)
    return await chain.submit_extrinsic(signed, wait_for_inclusion=True)


def shown(record: Any) -> Facts:
    event = record["event"]
    return {"name": f"{event['module_id']}.{event['event_id']}", "fields": event["attributes"]}


async def events_of(receipt: Any) -> list[Facts]:
    return [shown(record) for record in await receipt.triggered_events]


async def eventually(chain: Any, first: int, wanted: Callable[[Facts], bool]) -> tuple[Facts, str]:
    """Return the first event that is wanted, from block ``first`` on, and its block's hash."""
    number = first
    while True:
        at = await result_of(chain, "chain_getBlockHash", number) if number <= await height(chain) else None
        if at is None:
            await asyncio.sleep(0.1)
            continue
        for record in await chain.get_events(at):
            if wanted(event := shown(record)):
                return event, at
        number += 1


async def height(chain: Any) -> int:
    return int((await result_of(chain, "chain_getHeader"))["number"], 16)


async def connect(user: User) -> Facts:
    chains = (user.newcomer, user.reader)
    return {
        "chain": user.relay._chain,
        "genesis": await user.relay.get_block_hash(0),
        "spec_name": (await result_of(user.relay, "state_getRuntimeVersion"))["specName"],
        "ss58": (await user.relay.get_constant("System", "SS58Prefix")).value,
        "parachains": [await chain.get_block_hash(0) for chain in chains],
    }


async def metadata(user: User) -> Facts:
    async def pallets(chain: Any) -> list[str]:
        return [pallet.name for pallet in (await chain.init_runtime()).metadata.pallets]

    runtime = await user.relay.init_runtime()
    return {
        "version": 14 if runtime.metadata_v15 is None else 15,
        "relay": await pallets(user.relay),
        "parachain": await pallets(user.reader),
        "apis": sorted(runtime.runtime_api_map),
    }


async def head(user: User) -> Facts:
    at = await result_of(user.relay, "chain_getBlockHash")
    who = (await user.relay.query("System", "Account", [user.bob.ss58_address], block_hash=at)).value
    return {
        "at": at,
        "header_number": (await user.relay.get_block_header(at))["header"]["number"],
        "number": await user.value("System", "Number", at),
        "timestamp": await user.value("Timestamp", "Now", at),
        "free": who["data"]["free"],
        "nonce": who["nonce"],
    }


async def past(user: User) -> Facts:
    number = await height(user.relay) - 2
    at = await user.relay.get_block_hash(number)
    return {
        "at": at,
        "header_number": number,
        "number": await user.value("System", "Number", at),
        "parent": await user.value("System", "ParentHash", at),
    }


async def paged_keys(user: User) -> Facts:
    prefix = (await user.relay.create_storage_key("System", "Account")).to_hex()
    pages: list[list[str]] = []
    start = None
    while not pages or len(pages[-1]) == 5:
        pages.append(await result_of(user.relay, "state_getKeysPaged", prefix, 5, *([start] if start else [])))
        start = pages[-1][-1] if pages[-1] else None
    found = await user.relay.query_map("System", "Account", page_size=1)
    who, info = await anext(aiter(found))
    return {"pages": pages, "first_account": who, "first_free": getattr(info, "value", info)["data"]["free"]}


async def storage_subscription(user: User) -> Facts:
    numbers: list[int] = []

    async def take(_: Any, value: Any, __: str) -> bool | None:
        numbers.append(value)
        return True if len(numbers) == 4 else None

    key = await user.relay.create_storage_key("System", "Number")
    with suppress(TypeError):  # of the client itself, which takes its own end of a subscription for an answer
        await user.relay.subscribe_storage([key], take)
    return {"numbers": numbers}


async def head_subscription(user: User) -> Facts:
    heads: list[Facts] = []
    finalized: list[int] = []

    async def take(obj: Any) -> bool | None:
        heads.append({"number": obj["header"]["number"], "parent": obj["header"]["parentHash"]})
        return True if len(heads) == 4 else None

    async def take_finalized(obj: Any) -> bool | None:
        finalized.append(obj["header"]["number"])
        return True if len(finalized) == 3 else None

    await user.relay.subscribe_block_headers(take)
    await user.relay.subscribe_block_headers(take_finalized, finalized_only=True)
    hashes = [await user.relay.get_block_hash(head["number"]) for head in heads]
    return {
        "heads": [{**head, "hash": found} for head, found in zip(heads, hashes, strict=True)],
        "finalized": finalized,
    }


async def block(user: User) -> Facts:
    async def calls(chain: Any) -> list[Facts]:
        found = await chain.get_block(await result_of(chain, "chain_getBlockHash"))
        return [extrinsic.value["call"] for extrinsic in found["extrinsics"]]

    def named(call: Facts) -> str:
        return f"{call['call_module']}.{call['call_function']}"

    inner = await calls(user.reader)
    (given,) = (call["call_args"][0]["value"] for call in inner if call["call_function"] == "set_validation_data")
    return {
        "relay": [named(call) for call in await calls(user.relay)],
        "parachain": [named(call) for call in inner],
        "relay_parent_number": given["validation_data"]["relay_parent_number"],
        "relay_parent_storage_root": given["validation_data"]["relay_parent_storage_root"],
        "nodes": given["relay_chain_state"]["trie_nodes"],
    }


async def child_storage(user: User) -> Facts:
    ask = partial(result_of, user.relay)
    at, child = await ask("chain_getBlockHash"), child_key(PUBLISHER)
    keys = await ask("childstate_getKeys", child, "0x", at)
    return {
        "at": at,
        "keys": keys,
        "second_page": await ask("childstate_getKeysPaged", child, "0x", 7, keys[6], at),
        "value": await ask("childstate_getStorage", child, keys[0], at),
        "size": await ask("childstate_getStorageSize", child, keys[0], at),
        "hash": await ask("childstate_getStorageHash", child, keys[0], at),
    }


async def child_proof(user: User) -> Facts:
    ask = partial(result_of, user.relay)
    at, child = await ask("chain_getBlockHash"), child_key(PUBLISHER)
    key = (await ask("childstate_getKeys", child, "0x", at))[0]
    proof = await ask("state_getChildReadProof", child, [key], at)
    return {
        "at": at,
        "proved_at": proof["at"],
        "state_root": (await user.relay.get_block_header(at))["header"]["stateRoot"],
        "child_key": child,
        "key": key,
        "value": await ask("childstate_getStorage", child, key, at),
        "nodes": proof["proof"],
        "top_nodes": (await ask("state_getReadProof", [child], at))["proof"],
    }


async def transfer(user: User) -> Facts:
    fresh = Pair(b"async-substrate-interface".ljust(32))
    params = {"dest": fresh.ss58_address, "value": 5 * DOT}
    before = await user.account(user.alice)
    call = await user.relay.compose_call("Balances", "transfer_keep_alive", params)
    predicted = (await user.relay.get_payment_info(call, user.alice))["partial_fee"]
    receipt = await send(user.relay, user.alice, "Balances", "transfer_keep_alive", **params)
    after = await user.account(user.alice)
    assert await receipt.is_success
    return {
        "block": receipt.block_hash,
        "amount": 5 * DOT,
        "events": await events_of(receipt),
        "before": before["data"]["free"],
        "after": after["data"]["free"],
        "nonces": [before["nonce"], after["nonce"]],
        "received": (await user.account(fresh))["data"]["free"],
        "predicted_fee": predicted,
        "paid_fee": await receipt.total_fee_amount,
    }


async def register(user: User) -> Facts:
    receipt = await send(user.relay, user.bob, "Broadcaster", "register_publisher", para_id=NEWCOMER)
    info = (await user.relay.query("Broadcaster", "RegisteredPublishers", [NEWCOMER])).value
    return {
        "events": await events_of(receipt),
        "manager": info["manager"],
        "deposit": info["deposit"],
        "constant": (await user.relay.get_constant("Broadcaster", "PublisherDeposit")).value,
        "reserved": (await user.account(user.bob))["data"]["reserved"],
    }


async def failing_call(user: User) -> Facts:
    before = await user.account(user.bob)
    receipt = await send(user.relay, user.bob, "Broadcaster", "register_publisher", para_id=NEWCOMER)
    after = await user.account(user.bob)
    assert not await receipt.is_success
    error = await receipt.error_message
    return {
        "events": await events_of(receipt),
        "name": f"Broadcaster.{error['name']}",
        "docs": " ".join(error["docs"]),
        "paid": before["data"]["free"] - after["data"]["free"],
        "nonces": [before["nonce"], after["nonce"]],
    }


async def subscribe(user: User) -> Facts:
    call = await user.reader.compose_call("Subscriber", "subscribe", {"publisher": NEWCOMER, "keys": [KEY]})
    return {"events": await events_of(await send(user.reader, user.alice, "Sudo", "sudo", call=call))}


async def publish(user: User) -> Facts:
    value = f"0x{'ab' * 21}"
    first = await height(user.relay)
    receipt = await send(user.newcomer, user.alice, "Publisher", "publish", items=[(KEY, value, 100)])
    event, at = await eventually(
        user.relay,
        first,
        lambda event: event["name"] == "Broadcaster.DataPublished" and event["fields"]["publisher"] == NEWCOMER,
    )
    entry = await result_of(user.relay, "childstate_getStorage", child_key(NEWCOMER), KEY, at)
    return {
        "events": await events_of(receipt),
        "told": event,
        "key": KEY,
        "value": value,
        "ttl": 100,
        "entry": entry,
    }


async def callback(user: User) -> Facts:
    first = await height(user.reader)
    await send(user.newcomer, user.alice, "Publisher", "publish", items=[(KEY, f"0x{'cd' * 40}", 0)])
    event, _ = await eventually(
        user.reader,
        first,
        lambda event: event["name"] == "Subscriber.DataProcessed" and event["fields"]["value_size"] == 40,
    )
    return {"key": KEY, "told": event}


async def refusal(chain: Any, extrinsic: Any) -> Facts:
    answer = await chain._make_rpc_request([chain.make_payload("it", "author_submitExtrinsic", [str(extrinsic.data)])])
    return dict(answer["it"][0]["error"])


async def nonces(user: User) -> Facts:
    relay, charlie = user.relay, user.charlie
    nonce = await result_of(relay, "system_accountNextIndex", charlie.ss58_address)

    async def remark(text: str, number: int) -> Any:
        call = await relay.compose_call("System", "remark_with_event", {"remark": text})
        return await relay.create_signed_extrinsic(call, charlie, nonce=number)

    sooner, later, stale = [await remark(*it) for it in (("sooner", nonce), ("later", nonce + 1), ("stale", nonce))]
    waits = asyncio.create_task(relay.submit_extrinsic(later, wait_for_inclusion=True))
    await asyncio.sleep(1.2)
    waiting = len(await result_of(relay, "author_pendingExtrinsics"))
    first = await relay.submit_extrinsic(sooner, wait_for_inclusion=True)
    second = await waits
    return {
        "waiting": waiting,
        "blocks": [first.block_hash, second.block_hash],
        "nonces": [nonce, await result_of(relay, "system_accountNextIndex", charlie.ss58_address)],
        "stale": await refusal(relay, stale),
    }


async def mortality(user: User) -> Facts:
    relay = user.relay
    call = await relay.compose_call("System", "remark", {"remark": "mortal"})
    receipts = []
    for era in ({"period": 16}, None):
        signed = await relay.create_signed_extrinsic(call, user.dave, era=era)
        receipts.append(await relay.submit_extrinsic(signed, wait_for_inclusion=True))
    while (number := await height(relay)) < 12:
        await asyncio.sleep(0.5)
    expired = await relay.create_signed_extrinsic(call, user.dave, era={"period": 4, "current": number - 8})
    found = [
        extrinsic.value["era"]
        for receipt in receipts
        for extrinsic in (await relay.get_block(receipt.block_hash))["extrinsics"]
        if "era" in extrinsic.value
    ]
    return {
        "blocks": [receipt.block_hash for receipt in receipts],
        "eras": found,
        "expired": await refusal(relay, expired),
    }


async def bad_signature(user: User) -> Facts:
    call = await user.relay.compose_call("System", "remark", {"remark": "forged"})
    return await refusal(
        user.relay, await user.relay.create_signed_extrinsic(call, user.dave, signature=f"0x{'11' * 64}")
    )


async def sudo(user: User) -> Facts:
    call = await user.relay.compose_call("Broadcaster", "force_deregister_publisher", {"para_id": NEWCOMER})
    receipt = await send(user.relay, user.alice, "Sudo", "sudo", call=call)
    refused = await send(user.relay, user.bob, "Sudo", "sudo", call=call)
    left = await user.relay.query("Broadcaster", "RegisteredPublishers", [NEWCOMER])
    return {
        "events": await events_of(receipt),
        "left": getattr(left, "value", left) is not None,
        "refused": await events_of(refused),
    }


def extrinsic_hash(extrinsic: str) -> str:
    return f"0x{blake2b(bytes.fromhex(extrinsic[2:]), digest_size=32).hexdigest()}"


async def fork(user: User) -> Facts:
    relay = user.relay
    await result_of(relay, "dev_setBlockTime", "manual")
    try:
        parent = await result_of(relay, "chain_getBlockHash")
        call = await relay.compose_call("System", "remark", {"remark": MARKER})
        nonce = await result_of(relay, "system_accountNextIndex", user.dave.ss58_address)
        signed = await relay.create_signed_extrinsic(call, user.dave, nonce=nonce)  # it counts what was refused, too
        sent = (await relay.submit_extrinsic(signed)).extrinsic_hash
        first = await result_of(relay, "dev_newBlock")
        await result_of(relay, "dev_setHead", parent)
        await result_of(relay, "dev_setStorage", [[MARKER, "0x01"]])
        second = await result_of(relay, "dev_newBlock")
        bodies = [(at, (await result_of(relay, "chain_getBlock", at))["block"]["extrinsics"]) for at in (first, second)]
        blocks = [at for at, extrinsics in bodies if sent in map(extrinsic_hash, extrinsics)]
        markers = [await result_of(relay, "state_getStorage", MARKER, at) for at in (first, second)]
        return {"first": first, "second": second, "blocks": blocks, "markers": markers}
    finally:
        await result_of(relay, "dev_setBlockTime", "500ms")


async def reconnection(_: User) -> Facts:
    async with AsyncSubstrateInterface(url=CUTTABLE) as chain:
        before = [await height(chain)]
        ask_for_a_cut()
        await asyncio.sleep(2)
        after = [await height(chain), await height(chain)]
        return {"before": before, "after": after, "number": after[-1]}


async def restart(user: User) -> Facts:
    blocks: list[str] = []
    seen: list[Facts] = []

    async def change(chain: Any) -> None:
        receipt = await send(chain, user.charlie, "System", "remark", remark=MARKER)
        blocks.append(receipt.block_hash)

    async def look(chain: Any) -> None:
        nonce = await result_of(chain, "system_accountNextIndex", user.charlie.ss58_address)
        seen.append({"genesis": await chain.get_block_hash(0), "nonce": nonce})

    async with AsyncSubstrateInterface(url=URL) as chain:
        await change(chain)
        await look(chain)
    ask_for_a_restart()
    async with AsyncSubstrateInterface(url=URL) as chain:
        await look(chain)
        await change(chain)
        await look(chain)
    return {"blocks": blocks, "seen": seen}


ITEMS = {
    "connect": connect,
    "metadata": metadata,
    "head": head,
    "past": past,
    "paged keys": paged_keys,
    "storage subscription": storage_subscription,
    "head subscription": head_subscription,
    "block": block,
    "child storage": child_storage,
    "child proof": child_proof,
    "transfer": transfer,
    "register": register,
    "failing call": failing_call,
    "subscribe": subscribe,
    "publish": publish,
    "callback": callback,
    "nonces": nonces,
    "mortality": mortality,
    "bad signature": bad_signature,
    "sudo": sudo,
    "fork": fork,
    "reconnection": reconnection,
    "restart": restart,
}

URL, CUTTABLE = sys.argv[1:]


async def main() -> None:
    async with (
        AsyncSubstrateInterface(url=URL) as relay,
        AsyncSubstrateInterface(url=f"{URL}/para/{NEWCOMER}") as newcomer,
        AsyncSubstrateInterface(url=f"{URL}/para/{READER}") as reader,
    ):
        user = User(relay, newcomer, reader)
        await do_async((name, partial(work, user)) for name, work in ITEMS.items())


asyncio.run(main())
