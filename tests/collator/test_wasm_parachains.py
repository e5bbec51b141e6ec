"""Wasm parachains beside modelled ones: when they build, what the relay chain makes of their heads and messages."""

from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest

from collator.hand_made_parachain import NOTES, NUMBER, PANIC, PASS, SEND, HandMadeParachain
from collator.networks import PUBLISHER, SUBSCRIBER, keys, values
from relaycast_collator import (
    BlockBuilt,
    ChainSimulator,
    Fact,
    MessagesQueued,
    MessagesRefused,
    Pace,
    ParachainLeft,
    RelaySealed,
    TickBegan,
    WasmBlockBuilt,
    WasmBlockRefused,
)
from relaycast_collator.chains import ChainsDump
from relaycast_collator.relay_chain import FIRST_SLOT, host_configuration
from relaycast_pallets.frame.well_known_keys import ACTIVE_CONFIG, CURRENT_SLOT, para_head
from relaycast_pallets.messaging.relay_queues import MODELLED_CHANNEL
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import blake2_256
from relaycast_trie.scale import encode_bytes, encode_u64
from relaycast_xcm import ParaId, Publish
from relaycast_xcm.checkpoint import CheckpointRefused, decoded, encoded
from relaycast_xcm.instructions import SetTopic
from relaycast_xcm.message import encode_versioned_xcm
from relaycast_xcm.ump import POLKADOT_LIMITS

WASM = ParaId(1_500)
"""A system parachain: it publishes without registering."""

OTHER_WASM = ParaId(1_501)

F = TypeVar("F", bound=Fact)


def chains(parachain: HandMadeParachain, **pace: int) -> ChainSimulator:
    made = ChainSimulator(seed=7)
    made.add_parachain(PUBLISHER)
    made.add_wasm_parachain(parachain, pace=Pace(**pace))
    return made


def of_kind(facts: list[Fact], kind: type[F]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def passed(made: ChainSimulator, ticks: int) -> list[Fact]:
    return [fact for _ in range(ticks) for fact in made.step()]


def test_wasm_parachains_build_after_the_modelled_parachains_and_on_the_same_relay_parents() -> None:
    facts = passed(chains(HandMadeParachain(WASM)), 2)
    assert [type(it) for it in facts] == [TickBegan, RelaySealed, BlockBuilt, WasmBlockBuilt] * 2
    ours, theirs = of_kind(facts, BlockBuilt), of_kind(facts, WasmBlockBuilt)
    assert [it.relay_parent for it in ours] == [it.relay_parent for it in theirs]
    assert [it.block.header.number for it in theirs] == [1, 2]
    assert theirs[1].parent == theirs[0].block.header


def test_a_pace_says_when_a_wasm_parachain_builds_and_how_often() -> None:
    facts = passed(chains(HandMadeParachain(WASM), relay_blocks=2, cores=3, relay_parent_offset=1), 6)
    built = of_kind(facts, WasmBlockBuilt)
    assert [it.tick for it in built] == [2, 2, 2, 4, 4, 4, 6, 6, 6]
    assert [it.relay_parent.number for it in built[::3]] == [0, 2, 4]


def test_an_id_is_that_of_one_parachain_modelled_or_not() -> None:
    made = chains(HandMadeParachain(WASM))
    with pytest.raises(ValueError, match="parachain 1500 is there already"):
        made.add_parachain(WASM)
    with pytest.raises(ValueError, match="parachain 1500 is there already"):
        made.add_wasm_parachain(HandMadeParachain(WASM))
    with pytest.raises(ValueError, match="parachain 2000 is there already"):
        made.add_wasm_parachain(HandMadeParachain(PUBLISHER))


def test_the_next_relay_block_includes_a_wasm_parachains_head() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    made.step()
    head = parachain.head
    made.step()
    assert made.relay_chain.state.get(para_head(WASM)) == encode_bytes(head.encode())


def test_messages_for_a_wasm_parachain_leave_the_queues_once_its_block_is_included() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    made.traffic[WASM] = lambda block: ((b"down %d" % block,) if block <= 3 else (), ())
    waiting = []
    for _ in range(6):
        made.step()
        waiting.append(len(made.relay_chain.dmp.messages(WASM, up_to=99)))
    assert parachain.mail == [b"down 1", b"down 2", b"down 3"]
    assert waiting == [1, 2, 2, 1, 0, 0]


def test_what_a_wasm_parachain_publishes_reaches_a_modelled_subscriber() -> None:
    parachain, published = HandMadeParachain(WASM), SubscribedKey.from_data(b"price")
    made = chains(parachain)
    made.add_parachain(SUBSCRIBER)
    made.subscribe(SUBSCRIBER, WASM, [bytes(published)])
    parachain.submit(SEND + encode_versioned_xcm([Publish(published, b"5.31", 0), SetTopic(bytes(32))]))
    facts = passed(made, 3)
    (queued,) = of_kind(facts, MessagesQueued)
    (message,) = queued.messages
    (publication,) = message.publications
    assert (publication.key, publication.value, publication.tick, message.id) == (published, b"5.31", 1, bytes(32))
    assert made.parachains[SUBSCRIBER].kept.values[WASM, published][0] == b"5.31"


def test_what_a_wasm_parachain_sends_to_another_parachain_arrives_where_a_channel_is_open() -> None:
    sender, recipient = HandMadeParachain(WASM), HandMadeParachain(OTHER_WASM)
    made = chains(sender)
    made.add_wasm_parachain(recipient)
    made.relay_chain.hrmp.open_channel(WASM, OTHER_WASM)
    for number in range(2):
        sender.submit(PASS + OTHER_WASM.encode() + b"message %d" % number)
    made.step()
    again = chains(HandMadeParachain(WASM))
    again.add_wasm_parachain(HandMadeParachain(OTHER_WASM))
    again.load(decoded(encoded(made.dump()), ChainsDump))
    for network in (made, again):
        facts = passed(network, 3)
        assert not of_kind(facts, WasmBlockRefused)
        assert network.relay_chain.hrmp.messages(OTHER_WASM, up_to=99) == []
    assert recipient.mail == [b"message 0", b"message 1"]
    assert again.relay_chain.head == made.relay_chain.head


def test_a_message_without_a_channel_is_told_and_dropped() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    parachain.submit(PASS + OTHER_WASM.encode() + b"message")
    (refused,) = of_kind(passed(made, 3), WasmBlockRefused)
    assert refused.reason == f"the relay chain refuses its message to {OTHER_WASM}: there is no channel from {WASM}"


def test_a_message_that_finds_no_room_in_its_channel_is_counted() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    made.add_wasm_parachain(HandMadeParachain(OTHER_WASM))
    channel = replace(MODELLED_CHANNEL, max_message_size=8)
    made.relay_chain.hrmp.open_channel(WASM, OTHER_WASM, channel)
    parachain.submit(PASS + OTHER_WASM.encode() + b"123456789")
    (refused,) = of_kind(passed(made, 3), MessagesRefused)
    assert (refused.para_id, refused.refused_bytes) == (OTHER_WASM, 9)


def test_signals_behind_an_empty_message_are_not_executed() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    for extrinsic in (SEND + b"first", SEND, SEND + b"a signal"):
        parachain.submit(extrinsic)
    (queued,) = of_kind(passed(made, 2), MessagesQueued)
    assert [message.data for message in queued.messages] == [b"first"]


def test_messages_beyond_the_relay_chains_limits_are_told_and_dropped() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    for number in range(POLKADOT_LIMITS.messages_per_candidate + 1):
        parachain.submit(SEND + b"%d" % number)
    facts = passed(made, 2)
    (refused,) = of_kind(facts, WasmBlockRefused)
    assert refused.reason.startswith("the relay chain refuses its upward messages: ")
    assert not of_kind(facts, MessagesQueued)


def test_a_wasm_parachain_that_refuses_stays_where_it_was_and_builds_again() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    made.step()
    head, state = parachain.head, parachain.state.snapshot()
    parachain.submit(PANIC + b"out of gas")
    (refused,) = of_kind(made.step(), WasmBlockRefused)
    assert (refused.reason, refused.log, refused.head) == ("out of gas", ("runtime: about to panic",), head)
    assert (parachain.head, parachain.state.snapshot()) == (head, state)
    (built,) = of_kind(made.step(), WasmBlockBuilt)
    assert built.parent == head


def test_a_wasm_parachain_that_leaves_builds_no_more_and_its_id_is_free_after_the_next_block() -> None:
    parachain = HandMadeParachain(WASM)
    made = chains(parachain)
    parachain.submit(SEND + b"never delivered")
    made.step()
    made.offboard(WASM)
    with pytest.raises(ValueError, match="leaves with the next relay block"):
        made.add_wasm_parachain(HandMadeParachain(WASM))
    facts = passed(made, 2)
    assert of_kind(facts, ParachainLeft)
    assert not of_kind(facts, WasmBlockBuilt)
    assert not of_kind(facts, MessagesQueued)
    assert made.relay_chain.state.get(para_head(WASM)) is None
    made.add_wasm_parachain(HandMadeParachain(WASM))


def test_chains_with_wasm_parachains_go_on_from_a_dump_as_if_nothing_had_been() -> None:
    def prepared() -> tuple[ChainSimulator, HandMadeParachain]:
        parachain = HandMadeParachain(WASM)
        return chains(parachain, cores=2), parachain

    made, parachain = prepared()
    made.traffic[WASM] = lambda block: ((b"down %d" % block,), ())
    for number in range(3):
        parachain.submit(SEND + b"message %d" % number)
        made.step()
    parachain.submit(b"waits")
    data = encoded(made.dump())
    assert set(msgspec.msgpack.decode(data)["guests"]) == {"guests", "inbound", "sent"}, "the words of older dumps"

    again, loaded = prepared()
    again.traffic[WASM] = made.traffic[WASM]
    again.load(decoded(data, ChainsDump))
    assert encoded(again.dump()) == data
    assert loaded.head == parachain.head
    expected = [fact.block for fact in of_kind(passed(made, 3), WasmBlockBuilt)]
    assert [fact.block for fact in of_kind(passed(again, 3), WasmBlockBuilt)] == expected
    assert again.relay_chain.head == made.relay_chain.head
    assert loaded.state.get(NOTES + blake2_256(b"waits")) == b"waits"


def test_a_dump_of_other_wasm_parachains_is_refused() -> None:
    dump = chains(HandMadeParachain(WASM)).dump()
    other = ChainSimulator(seed=7)
    other.add_parachain(PUBLISHER)
    with pytest.raises(CheckpointRefused, match=r"the Wasm parachains, got \[1500\] with messages of 1, expected \[\]"):
        other.load(dump)


def test_chains_without_wasm_parachains_dump_what_they_did() -> None:
    made = ChainSimulator(seed=7)
    made.add_parachain(PUBLISHER)
    assert "guests" not in msgspec.to_builtins(made.dump())


def test_the_first_wasm_parachain_finds_a_host_configuration_in_a_modelled_genesis() -> None:
    drawn = ChainSimulator(seed=7).relay_chain.state.get(ACTIVE_CONFIG)
    configured = chains(HandMadeParachain(WASM)).relay_chain
    told, found = host_configuration(POLKADOT_LIMITS), configured.state.get(ACTIVE_CONFIG)
    assert drawn is not None
    assert found == told + drawn[len(told) :]
    assert configured.head.state_root == configured.state.root == configured.genesis_root
    assert configured.state.get(CURRENT_SLOT) == encode_u64(FIRST_SLOT)


def test_slots_go_on_from_that_of_the_genesis() -> None:
    made = chains(HandMadeParachain(WASM))
    for _ in range(2):
        made.step()
    assert made.relay_chain.state.get(CURRENT_SLOT) == encode_u64(FIRST_SLOT + 2)
    without = ChainSimulator(seed=7)
    without.step()
    assert without.relay_chain.state.get(CURRENT_SLOT) == encode_u64(1)


def test_the_engine_of_a_wasm_parachains_tries_changes_nothing_but_time() -> None:
    heads = []
    for engine in ("plain", "array"):
        parachain = HandMadeParachain(WASM)
        made = chains(parachain)
        made.trie_engine = engine
        for values_ in (values(3), values(3, version=1)):
            for name, data in zip(keys(3), values_.values(), strict=True):
                parachain.submit(name + data)
            made.step()
        assert parachain.state.engine == engine
        heads.append((parachain.head, made.relay_chain.head.hash, parachain.state.get(NUMBER)))
    assert heads[0] == heads[1]
