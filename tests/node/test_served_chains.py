"""Served chains: what transactions do, in which order it is told, and that blocks, states and proofs hold together."""

from typing import Any

import pytest

from node.chains import (
    ALICE,
    BOB,
    PUBLISHER,
    READER,
    address,
    events_of,
    last_events,
    live_chains,
    modelled,
    signed,
    submit,
    sudo,
)
from relaycast_collator import BlockBuilt, Fact, RelaySealed
from relaycast_collator.header import Header, ordered_root
from relaycast_node.chain.exceptions import UnknownBlock
from relaycast_node.chain.genesis import ENDOWMENT
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import Finality
from relaycast_node.chain_clock import ChainClock
from relaycast_node.extrinsic.era import Mortal
from relaycast_node.extrinsic.extrinsic import Bare, decode_extrinsic
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT
from relaycast_pallets.timestamp import GENESIS_MILLISECONDS, SLOT_MILLISECONDS
from relaycast_trie import StorageProof
from relaycast_xcm import ParaId

KEY = b"\x07" * 32


@pytest.fixture
def live() -> ChainClock:
    live = live_chains()
    live.new_block()
    return live


def names(events: list[tuple[str, str, Any]]) -> list[str]:
    return [f"{pallet}.{name}" for pallet, name, _ in events]


def test_a_transfer_is_paid_made_and_told_in_upstreams_order(live: ChainClock) -> None:
    relay = live.relay
    data = submit(relay, ALICE, "Balances", "transfer_allow_death", dest=address(BOB), value=5 * 10**10)
    live.new_block()
    told = last_events(relay, data)
    assert names(told) == [
        "Balances.Withdraw", "Balances.Transfer", "TransactionPayment.TransactionFeePaid", "System.ExtrinsicSuccess"
    ]  # fmt: skip
    fee = told[2][2]["actual_fee"]
    alice = modelled(relay).executive.system.account_info(ALICE.account)
    assert (alice.nonce, alice.data.free) == (1, ENDOWMENT - 5 * 10**10 - fee)
    assert modelled(relay).executive.system.account_info(BOB.account).data.free == ENDOWMENT + 5 * 10**10


def test_a_refused_call_pays_counts_and_leaves_its_pallets_own_error(live: ChainClock) -> None:
    relay = live.relay
    data = submit(relay, BOB, "Broadcaster", "deregister_publisher", para_id=PUBLISHER)
    live.new_block()
    told = last_events(relay, data)
    assert names(told)[-1] == "System.ExtrinsicFailed"
    kind, error = told[-1][2]["dispatch_error"]
    broadcaster = next(it for it in modelled(relay).runtime.pallets if it.name == "Broadcaster")
    assert (kind, error["index"]) == ("Module", 200)
    assert broadcaster.errors[error["error"][0]].__name__ == "NotRegistered"
    assert modelled(relay).executive.system.account_nonce(BOB.account) == 1


def test_a_call_that_makes_no_sense_is_refused_and_the_chain_goes_on(live: ChainClock) -> None:
    relay = live.relay
    data = submit(relay, ALICE, "Broadcaster", "delete_keys", keys=[KEY], publisher=None)
    live.new_block()
    assert last_events(relay, data)[-1][2]["dispatch_error"] == ("Other", None)


def test_an_address_that_names_no_account_cannot_be_looked_up(live: ChainClock) -> None:
    relay = live.relay
    data = submit(relay, ALICE, "Balances", "transfer_allow_death", dest=("Raw", b"nobody"), value=1)
    live.new_block()
    assert last_events(relay, data)[-1][2]["dispatch_error"] == ("CannotLookup", None)


def test_the_whole_of_pubsub_is_driven_by_transactions(live: ChainClock) -> None:
    relay, publisher, reader = live.served()
    registered = submit(relay, ALICE, "Broadcaster", "register_publisher", para_id=PUBLISHER)
    subscribed = sudo(reader, "Subscriber", "subscribe", publisher=PUBLISHER, keys=[KEY])
    live.new_block()
    assert "Broadcaster.PublisherRegistered" in names(last_events(relay, registered))
    assert ("Sudo", "Sudid", {"sudo_result": ("Ok", ())}) in last_events(reader, subscribed)
    assert modelled(reader).executive.system.account_nonce(ALICE.account) == 1

    submit(publisher, BOB, "Publisher", "publish", items=[(KEY, b"hello", 0)])
    told = {0: list[str](), PUBLISHER: list[str](), READER: list[str]()}
    for _ in range(4):
        live.new_block()
        for para_id, chain in zip(told, live.served(), strict=True):
            told[para_id] += names(events_of(chain))
    assert "Publisher.ItemsSent" in told[PUBLISHER]
    assert {"Broadcaster.DataPublished", "MessageQueue.MessageProcessed"} <= set(told[0])
    assert told[READER].count("Subscriber.DataProcessed") == 1
    child = relay.state_at(relay.best.hash).child(derive_child_info(ParaId(PUBLISHER)).storage_key)
    assert (child.get(KEY) or b"")[1:6] == b"hello"


def test_a_block_of_a_parachain_carries_a_relay_proof_that_holds(live: ChainClock) -> None:
    reader = live.parachains[READER]
    (given, timed) = (decode_extrinsic(data) for data in reader.best.extrinsics)
    assert isinstance(given, Bare)
    assert isinstance(timed, Bare)
    call = modelled(reader).runtime.decode_call(given.call)
    data = call.args["data"]
    root = data["validation_data"]["relay_parent_storage_root"]
    relay_parent = live.relay.block(live.relay.hash_of(data["validation_data"]["relay_parent_number"]) or b"")
    assert relay_parent is not None
    assert relay_parent.header.state_root == root
    proof = StorageProof(data["relay_chain_state"]["trie_nodes"])
    told = live.relay.state_at(relay_parent.hash).get(CURRENT_SLOT)
    assert proof.verify(root, [CURRENT_SLOT])[CURRENT_SLOT] == told


def test_headers_commit_to_bodies_and_states(live: ChainClock) -> None:
    submit(live.relay, ALICE, "System", "remark_with_event", remark=b"hello")
    live.new_block(2)
    for chain in live.served():
        parent = chain.block(chain.genesis_hash)
        assert parent is not None
        for number in range(1, chain.best.number + 1):
            block = chain.block(chain.hash_of(number) or b"")
            assert block is not None
            assert (block.header.parent_hash, block.hash) == (parent.hash, Header.decode(block.header.encode()).hash)
            assert block.header.extrinsics_root == ordered_root(list(block.extrinsics))
            parent = block


def test_past_states_and_their_proofs_agree_with_their_headers(live: ChainClock) -> None:
    relay = live.relay
    live.new_block(3)
    key = modelled(relay).executive.blocks.events.storage_key()
    for number in range(relay.best.number + 1):
        block_hash = relay.hash_of(number) or b""
        block = relay.block(block_hash)
        assert block is not None
        proof = StorageProof(relay.prove(block_hash, [key]))
        assert proof.verify(block.header.state_root, [key])[key] == relay.state_at(block_hash).get(key)


def test_states_that_are_too_old_to_be_proven_from_can_still_be_read() -> None:
    live = live_chains()
    live.chains.relay_chain.state.keep(2)
    live.new_block(4)
    old = live.relay.hash_of(1) or b""
    assert live.relay.state_at(old).get(modelled(live.relay).executive.blocks.digest.storage_key())
    with pytest.raises(StateDiscarded):
        live.relay.prove(old, [b"key"])


def test_an_unknown_block_is_named(live: ChainClock) -> None:
    with pytest.raises(UnknownBlock, match=f"there is no block 0x{'07' * 32}"):
        live.relay.state_at(KEY)


def test_finality_lags_and_every_block_is_told_once_as_final() -> None:
    live = live_chains()
    heads, finalized = list[ServedBlock](), list[Finality]()
    live.relay.new_heads.connect(heads.append)
    disconnect = live.relay.finalized_heads.connect(finalized.append)
    live.new_block(5)
    assert [it.number for it in heads] == [1, 2, 3, 4, 5]
    assert [it.block.number for it in finalized] == [1, 2, 3]
    assert live.relay.finalized.number == 3
    disconnect()
    live.new_block()
    assert len(finalized) == 3


def test_time_follows_from_the_number_of_the_block(live: ChainClock) -> None:
    live.new_block(2)
    for chain in live.served():
        now = modelled(chain).executive.timestamp.now
        assert now == GENESIS_MILLISECONDS + chain.best.number * SLOT_MILLISECONDS


def test_nonces_are_taken_in_their_order_and_later_ones_wait(live: ChainClock) -> None:
    relay = live.relay
    remark = modelled(relay).runtime.encode_call("System", "remark", remark=b"x")
    later = signed(relay, ALICE, remark, nonce=1)
    relay.submit(later)
    live.new_block()
    assert later not in relay.best.extrinsics
    first = signed(relay, ALICE, remark, nonce=0)
    relay.submit(first)
    live.new_block()
    assert relay.best.extrinsics[2:] == (first, later)
    with pytest.raises(PoolError) as refusal:
        relay.submit(signed(relay, ALICE, remark, nonce=0, tip=1))
    assert (refusal.value.code, refusal.value.data) == (1010, "Transaction is outdated")


def test_a_mortal_transaction_dies_with_its_era(live: ChainClock) -> None:
    relay = live.relay
    remark = modelled(relay).runtime.encode_call("System", "remark", remark=b"x")
    data = signed(relay, ALICE, remark, era=Mortal.starting_at(relay.best.number, period=4))
    live.new_block(8)
    with pytest.raises(PoolError) as refusal:
        relay.submit(data)
    assert refusal.value.code == 1010


def test_the_same_transactions_give_the_same_blocks() -> None:
    first, second = live_chains(), live_chains()
    for para_id, pallet, call, args in (
        (None, "Broadcaster", "register_publisher", {"para_id": PUBLISHER}),
        (PUBLISHER, "Publisher", "publish", {"items": [(KEY, b"v", 0)]}),
    ):
        chain, other = (it.relay if para_id is None else it.parachains[para_id] for it in (first, second))
        other.submit(submit(chain, ALICE, pallet, call, **args))
    for live in (first, second):
        live.new_block(3)
    assert [it.best for it in first.served()] == [it.best for it in second.served()]


def test_served_chains_go_on_from_a_dump_with_the_very_same_blocks() -> None:
    """The dump lies between two ticks: a publication is on its way, and a written value waits for its block."""
    first, second = live_chains(), live_chains()
    sudo(first.relay, "Broadcaster", "force_register_publisher", manager=BOB.account, deposit=0, para_id=PUBLISHER)
    first.new_block(2)
    first.chains.parachains[ParaId(PUBLISHER)].publish(KEY, b"price")
    first.new_block()
    first.set_storage(None, {b"waits": b"for its block"})

    second.chains.load(first.chains.dump())
    transfers = []
    for chain, other in zip(
        (first.relay, first.parachains[READER]), (second.relay, second.parachains[READER]), strict=True
    ):
        transfers.append(submit(chain, BOB, "Balances", "transfer_keep_alive", dest=address(ALICE), value=5))
        other.submit(transfers[-1])
    headers: list[Header] = []
    second.chains.listeners[:] = [lambda fact: headers.extend(sealed_in(fact))]
    for _ in range(4):
        second.chains.step()

    built = first.new_block(4)
    assert [header.hash for header in headers] == [block.hash for block in built]
    assert {*transfers} <= {extrinsic for block in built for extrinsic in block.extrinsics}
    assert first.relay.state_at(first.relay.best.hash).get(b"waits") == b"for its block"


def sealed_in(fact: Fact) -> list[Header]:
    return [fact.block.header] if isinstance(fact, RelaySealed | BlockBuilt) else []


def test_a_parachains_block_that_panics_leaves_its_transactions_in_the_pool(live: ChainClock) -> None:
    reader = live.parachains[READER]
    collator = live.chains.collators[ParaId(READER)]
    data = submit(reader, ALICE, "System", "remark_with_event", remark=b"still here")
    collator.tamper = lambda inherent: type(inherent)(inherent.validation_data, ())
    number = reader.best.number
    live.new_block()
    assert reader.best.number == number
    collator.tamper = None
    live.new_block()
    assert data in reader.best.extrinsics


def test_a_transaction_that_meets_a_state_of_other_types_is_left_out_and_the_chain_goes_on(live: ChainClock) -> None:
    relay = live.relay
    data = submit(relay, ALICE, "Balances", "transfer_allow_death", dest=address(BOB), value=1)
    live.set_storage(
        None, {modelled(relay).executive.system.account.storage_key(BOB.account): b"\x01"}, is_checked=True
    )
    number = relay.best.number
    live.new_block()
    assert (relay.best.number, data in relay.best.extrinsics) == (number + 1, False)
    assert modelled(relay).executive.system.account_nonce(ALICE.account) == 0


def test_a_transaction_that_can_no_longer_be_paid_leaves_the_pool_as_invalid(live: ChainClock) -> None:
    relay, told = live.relay, list[str]()
    submit(relay, ALICE, "Balances", "transfer_all", dest=address(BOB), keep_alive=True)
    data = signed(relay, ALICE, modelled(relay).runtime.encode_call("System", "remark", remark=b"x"))
    relay.pool.submit_and_watch(data, lambda status: told.append(str(status.kind)))
    live.new_block()
    assert data not in relay.best.extrinsics
    assert relay.pool.pending() == []
    assert told == ["ready", "invalid"]
