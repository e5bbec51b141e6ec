"""Messages in whole networks: heads in proofs, channels among the static keys, forked relay chains that are joined."""

from dataclasses import replace

import pytest

from collator.networks import OTHER_SUBSCRIBER, PUBLISHER, SUBSCRIBER, keys, network, publish, run, values
from ledger.watched import Watched
from relaycast_collator import MODELLED_SENDER, BlockBuilt, Genesis, MessagesRefused, Pace, modelled_genesis
from relaycast_pallets.frame.well_known_keys import (
    dmq_mqc_head,
    hrmp_channel,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
)
from relaycast_pallets.messaging.hrmp_channel import HrmpChannel
from relaycast_pallets.messaging.inbound_message import (
    AbridgedMessages,
    HashedMessage,
    InboundMessage,
    extend,
)
from relaycast_pallets.messaging.relay_queues import MAX_WAITING_MESSAGES
from relaycast_pallets.parachain_system.inbound_messages import QueueHeadMismatch
from relaycast_pallets.parachain_system.pallet import Panic, ParachainInherentData
from relaycast_trie import CodecError
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId

SENDERS = (ParaId(2_100), ParaId(2_101), ParaId(2_102))


def loaded(*, trie_engine: Engine = "auto", pace: Pace | None = None) -> Watched:
    """Return a network whose subscriber is sent messages of both kinds, some blocks more than fit."""
    net = Watched(seed=7, trie_engine=trie_engine)
    net.add_parachain(PUBLISHER)
    net.register_publisher(PUBLISHER)
    net.add_parachain(SUBSCRIBER, max_pov_size=20_000, pace=pace)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))

    def traffic(block: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        sizes = [500 + 10 * block + index for index in range(40 if block % 5 == 0 else 4)]
        return tuple(map(bytes, sizes[::2])), tuple(map(bytes, sizes))

    net.traffic[SUBSCRIBER], net.senders[SUBSCRIBER] = traffic, SENDERS
    return net


def passed(net: Watched, ticks: int) -> list[BlockBuilt]:
    """Let ticks pass, with new values in each, and return the subscriber's blocks."""
    built: list[BlockBuilt] = []
    net.listeners.append(
        lambda fact: built.append(fact) if isinstance(fact, BlockBuilt) and fact.para_id == SUBSCRIBER else None
    )
    for tick in range(ticks):
        publish(net, PUBLISHER, values(3, tick))
        net.step()
    assert net.invariants.ok, net.invariants.violations
    return built


def test_every_block_reaches_the_heads_of_its_relay_parent() -> None:
    net = loaded()
    blocks = passed(net, 14)
    heads: dict[ParaId | None, bytes] = dict.fromkeys((None, *SENDERS), bytes(32))
    cut_short = 0
    for fact in blocks:
        inherent, root = fact.block.inherent, fact.relay_parent.state_root
        for message in (*inherent.downward_messages.full, *inherent.horizontal_messages.full):
            heads[message.sender] = extend(heads[message.sender], message.hashed())
        reached = dict(heads)
        hashed = (*inherent.downward_messages.hashed, *inherent.horizontal_messages.hashed)
        for entry in hashed:
            reached[entry.sender] = extend(reached[entry.sender], entry)
        cut_short += bool(hashed)
        asked = [dmq_mqc_head(SUBSCRIBER), *(hrmp_channel(sender, SUBSCRIBER) for sender in SENDERS)]
        downward, *channels = net.relay_chain.prove_read(fact.relay_parent, asked).verify(root, asked).values.values()
        assert reached[None] == (downward or bytes(32))
        for sender, channel in zip(SENDERS, channels, strict=True):
            assert reached[sender] == (bytes(32) if channel is None else HrmpChannel.decode(channel).head)
    assert cut_short > 2


def test_messages_leave_the_relay_chain_when_the_block_that_took_them_is_included() -> None:
    net = network()
    net.traffic[SUBSCRIBER] = lambda block: ((b"down",), (b"across",)) if block == 1 else ((), ())
    waiting = []
    for _ in range(4):
        net.step()
        waiting.append([len(found) for found in net.relay_chain.inbound_messages(net.relay_chain.head, SUBSCRIBER)])
    assert waiting == [[1, 1], [1, 1], [0, 0], [0, 0]], "sent in block 1, taken at tick 2, included in block 3"
    channel = HrmpChannel.decode(net.relay_chain.state.get(hrmp_channel(MODELLED_SENDER, SUBSCRIBER)) or b"")
    assert (channel.msg_count, channel.total_size) == (0, 0)
    assert channel.mqc_head is not None


@pytest.mark.parametrize("pace", [Pace(cores=3), Pace(relay_blocks=3), Pace(relay_parent_offset=3)])
def test_heads_are_reached_at_every_pace(pace: Pace) -> None:
    blocks = passed(loaded(pace=pace), 15)
    assert sum(len(fact.block.inherent.horizontal_messages.full) for fact in blocks) > 10


def test_plain_and_array_tries_hold_the_same_messages() -> None:
    plain, array = loaded(trie_engine="plain"), loaded(trie_engine="array")
    assert [fact.block.header for fact in passed(plain, 8)] == [fact.block.header for fact in passed(array, 8)]
    assert plain.relay_chain.head == array.relay_chain.head


def test_open_channels_join_the_static_keys_of_both_ends() -> None:
    def static_bytes(*, talks: bool) -> list[int]:
        net = network(subscribers=(SUBSCRIBER, OTHER_SUBSCRIBER))
        for subscriber in (SUBSCRIBER, OTHER_SUBSCRIBER):
            net.subscribe(subscriber, PUBLISHER, keys(1))
        if talks:
            net.senders[SUBSCRIBER] = (OTHER_SUBSCRIBER,)
            net.traffic[SUBSCRIBER] = lambda block: ((), (b"m",)) if block == 1 else ((), ())
        return [record.static_bytes for record in run(net, 4)[-2:]]

    for silent, open_to in zip(static_bytes(talks=False), static_bytes(talks=True), strict=True):
        assert open_to - silent > 85, "the entry of the channel alone has 85 bytes"


def test_a_collator_that_hides_messages_builds_no_block_until_it_hands_them_over() -> None:
    net = network()
    net.traffic[SUBSCRIBER] = lambda block: ((b"down",), ()) if block == 2 else ((), ())
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))

    def hide(honest: ParachainInherentData) -> ParachainInherentData:
        return replace(honest, downward_messages=AbridgedMessages())

    net.collators[SUBSCRIBER].tamper = hide
    assert [record.panic is None for record in run(net, 2)] == [True, True], "nothing to hide"
    before = net.parachains[SUBSCRIBER].state.snapshot()
    hidden = run(net, 3)
    assert all("QueueHeadMismatch" in (record.panic or "") for record in hidden)
    assert [record.waiting_bytes for record in hidden] == [4, 4, 4]
    assert net.parachains[SUBSCRIBER].state.snapshot() == before
    net.collators[SUBSCRIBER].tamper = None
    (record,) = run(net, 1)
    assert (record.panic, record.message_bytes, record.waiting_bytes) == (None, 4, 0)


def forked() -> tuple[Genesis, bytes]:
    """Return a relay chain that has queued messages for the subscriber before, and the head of its downward queue."""
    head = extend(bytes(32), HashedMessage(7, bytes(32)))
    channel = HrmpChannel(10, 1_000, 500, 3, 700, extend(bytes(32), HashedMessage(8, bytes([1]) * 32)))
    top = {
        **modelled_genesis(7).top,
        dmq_mqc_head(SUBSCRIBER): head,
        hrmp_channel(SENDERS[0], SUBSCRIBER): channel.encode(),
        hrmp_ingress_channel_index(SUBSCRIBER): b"\x04" + SENDERS[0].encode(),
        hrmp_egress_channel_index(SENDERS[0]): b"\x04" + SUBSCRIBER.encode(),
    }
    return Genesis(top), head


def test_a_parachain_that_joins_a_forked_relay_chain_adopts_its_heads_and_channels() -> None:
    genesis, head = forked()
    net = Watched(seed=7, genesis=genesis)
    net.add_parachain(PUBLISHER)
    net.register_publisher(PUBLISHER)
    parachain = net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2))
    inbound = parachain.parachain_system.inbound
    assert inbound.last_dmq_mqc_head.get() == head
    assert parachain.head.state_root == parachain.state.root
    net.traffic[SUBSCRIBER] = lambda block: ((b"new",), (b"new",)) if block == 2 else ((), ())
    net.senders[SUBSCRIBER] = SENDERS[:1]
    publish(net, PUBLISHER, values(2))
    records = [record for record in run(net, 6) if record.para_id == SUBSCRIBER]
    assert [record.panic for record in records] == [None] * 6
    assert sum(record.message_bytes for record in records) == 6
    assert sum(len(record.deliveries) for record in records) == 2
    assert inbound.last_dmq_mqc_head.get() == extend(head, InboundMessage(2, b"new").hashed())
    channel = HrmpChannel.decode(net.relay_chain.state.get(hrmp_channel(SENDERS[0], SUBSCRIBER)) or b"")
    assert (channel.msg_count, channel.total_size, channel.max_capacity) == (0, 0, 10)
    assert net.invariants.ok


def test_a_parachain_that_does_not_adopt_them_builds_no_block() -> None:
    """The mutant: with heads of its own it reaches no head of the relay chain."""
    genesis, _ = forked()
    net = Watched(seed=7, genesis=genesis)
    parachain = net.add_parachain(SUBSCRIBER)
    parachain.parachain_system.inbound.last_dmq_mqc_head.kill()
    parachain.state.commit()
    collator = net.collators[SUBSCRIBER]
    with pytest.raises(Panic) as panic:
        collator.build(collator.collate(net.relay_chain.head))
    assert isinstance(panic.value.cause, QueueHeadMismatch)


def test_heads_that_are_none_refuse_the_parachain() -> None:
    net = Watched(genesis=Genesis({**modelled_genesis(7).top, dmq_mqc_head(SUBSCRIBER): b"short"}))
    with pytest.raises(CodecError, match="32 bytes, got 5"):
        net.add_parachain(SUBSCRIBER)
    assert SUBSCRIBER not in net.parachains


def test_a_parachain_that_leaves_takes_its_queues_and_channels_with_it() -> None:
    net = network()
    net.senders[SUBSCRIBER] = SENDERS
    net.traffic[SUBSCRIBER] = lambda _block: ((b"down",), (b"1", b"2", b"3"))
    run(net, 3)
    net.offboard(SUBSCRIBER)
    with pytest.raises(ValueError, match="leaves with the next relay block"):
        net.add_parachain(SUBSCRIBER)
    net.step()
    state = net.relay_chain.state
    gone = [dmq_mqc_head(SUBSCRIBER), hrmp_ingress_channel_index(SUBSCRIBER)]
    gone += [hrmp_channel(sender, SUBSCRIBER) for sender in SENDERS] + [hrmp_egress_channel_index(it) for it in SENDERS]
    assert not [key for key in gone if state.exists(key)]
    net.add_parachain(SUBSCRIBER, pace=Pace(relay_parent_offset=3))
    net.traffic[SUBSCRIBER] = lambda _block: ((b"down",), (b"1",))
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    records = run(net, 6)
    assert [record.panic for record in records] == [None] * 6
    assert min(record.relay_parent for record in records) == 4, "no older than when it joined"


def test_a_queue_refuses_messages_beyond_its_number() -> None:
    net = network()
    net.traffic[SUBSCRIBER] = lambda block: ((b"m",) * (MAX_WAITING_MESSAGES + 5), ()) if block == 1 else ((), ())
    (refused,) = [fact for fact in net.step() if isinstance(fact, MessagesRefused)]
    assert refused == MessagesRefused(1, SUBSCRIBER, 5)
