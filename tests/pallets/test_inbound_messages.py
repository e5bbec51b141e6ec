"""Messages as part of the state: links, channels and marks to the byte, and what a block is refused for."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import ALPHA
from pallets.subscriber_invariants import refused
from pallets.subscriber_world import SUBSCRIBER, K, World
from relaycast_pallets import CumulusSixths, Floor, ParachainInherentData, Policies, Remaining
from relaycast_pallets.frame.typed_storage import storage_prefix
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
    InboundMessageId,
    InboundMessagesData,
    drop_processed,
    extend,
    message_hash,
)
from relaycast_pallets.parachain_system.inbound_messages import (
    ChannelMissing,
    InvalidMessages,
    MessageOutOfOrder,
    MessagesHeldBack,
    MessagesTaken,
    MessagingState,
    NoMessageInFull,
    NoSuchChannel,
    QueueHeadMismatch,
)
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.policies import Advanced, AdvancementPolicy
from relaycast_pallets.subscriber.variants.drafts import Basic
from relaycast_trie import CodecError
from relaycast_xcm.primitives import ParaId

ONE, TWO = ParaId(1), ParaId(2)
TIGHT = 800
"""A block that holds some of the messages below in full, and not all."""

Lie = Callable[[ParachainInherentData], ParachainInherentData]


def blake(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def by_hand(*messages: tuple[int, bytes], head: bytes = bytes(32)) -> bytes:
    """Return the head of a chain, from the definition: short messages, so that their length is one byte."""
    for sent_at, data in messages:
        head = blake(head + sent_at.to_bytes(4, "little") + blake(bytes([len(data) << 2]) + data))
    return head


def item(name: str) -> bytes:
    return storage_prefix("ParachainSystem", name)


def test_a_link_has_these_bytes() -> None:
    assert message_hash(b"abc") == blake(b"\x0cabc")
    message = InboundMessage(258, b"abc")
    expected = blake(bytes(range(32)) + b"\x02\x01\x00\x00" + blake(b"\x0cabc"))
    assert extend(bytes(range(32)), message.hashed()) == expected
    assert extend(bytes(range(32)), replace(message, sender=ONE).hashed()) == expected, "a channel knows its sender"


def test_a_channel_has_85_bytes_once_it_held_a_message() -> None:
    channel = HrmpChannel(1, 2, 3, 4, 5, bytes([7]) * 32, 6, 8)
    numbers = b"".join(number.to_bytes(4, "little") for number in (1, 2, 3, 4, 5))
    deposits = (6).to_bytes(16, "little") + (8).to_bytes(16, "little")
    assert channel.encode() == numbers + b"\x01" + bytes([7]) * 32 + deposits
    assert len(channel.encode()) == 85
    assert len(replace(channel, mqc_head=None).encode()) == 85 - 32
    assert HrmpChannel.decode(channel.encode()) == channel
    assert HrmpChannel.decode_abridged(channel.encode()) == replace(channel, sender_deposit=0, recipient_deposit=0)
    with pytest.raises(CodecError):
        HrmpChannel.decode(channel.encode()[:-1])


def test_items_stand_under_their_real_keys() -> None:
    """Prefixes of the relay chain's items as the notes of the field have them."""
    assert dmq_mqc_head(SUBSCRIBER).hex().startswith("63f78c98723ddc9073523ef3beefda0c4d7fefc408aac59dbfe80a72ac8e3ce5")
    assert hrmp_channel(ONE, TWO).hex().startswith("6a0da05ca59913bc38a8630590f2627cb6604cff828a6e3f579ca6c59ace013d")
    assert hrmp_channel(ONE, TWO)[-8:] == b"\x01\x00\x00\x00\x02\x00\x00\x00"
    world = World()
    world.receive([b"down"], [b"across"], sender=1)
    world.block()
    top, _ = world.state.snapshot()
    assert top[item("LastDmqMqcHead")] == by_hand((1, b"down"))
    assert top[item("LastHrmpMqcHeads")] == b"\x04\x01\x00\x00\x00" + by_hand((1, b"across"))
    assert top[item("ProcessedDownwardMessages")] == b"\x01\x00\x00\x00"
    assert top[item("HrmpWatermark")] == b"\x01\x00\x00\x00"
    assert top[item("LastProcessedDownwardMessage")] == b"\x01\x00\x00\x00" + bytes(4)
    assert top[item("LastProcessedHrmpMessage")] == b"\x01\x00\x00\x00" + bytes(4)


def test_the_relay_chain_holds_heads_channels_and_indexes() -> None:
    world = World()
    world.receive([b"a", b"b"], [b"x"], sender=2)
    world.receive([], [b"yy"], sender=1)
    world.seal()
    world.receive([b"c"], [b"zzz"], sender=2)
    world.seal()
    assert world.relay.get(dmq_mqc_head(SUBSCRIBER)) == by_hand((1, b"a"), (1, b"b"), (2, b"c"))
    assert world.relay.get(hrmp_ingress_channel_index(SUBSCRIBER)) == b"\x08" + ONE.encode() + TWO.encode()
    assert world.relay.get(hrmp_egress_channel_index(ONE)) == b"\x04" + SUBSCRIBER.encode()
    channel = HrmpChannel.decode(world.relay.get(hrmp_channel(TWO, SUBSCRIBER)) or b"")
    assert (channel.msg_count, channel.total_size) == (2, 4)
    assert channel.mqc_head == by_hand((1, b"x"), (2, b"zzz"))
    world.hrmp.prune(SUBSCRIBER, 1)
    channel = HrmpChannel.decode(world.relay.get(hrmp_channel(TWO, SUBSCRIBER)) or b"")
    assert (channel.msg_count, channel.total_size, channel.mqc_head) == (1, 3, by_hand((1, b"x"), (2, b"zzz")))


@pytest.mark.parametrize(
    ("mark", "kept"), [((3, 0), 0), ((2, 0), 1), ((2, 1), 2), ((2, 4), 5), ((2, 5), 6), ((0, 1), 6), ((0, 3), 7)]
)
def test_processed_messages_are_dropped_up_to_their_mark(mark: tuple[int, int], kept: int) -> None:
    """The vector of cumulus' ``drop_processed_messages``."""
    messages = [InboundMessage(sent_at, b"") for sent_at in (0, 0, 2, 2, 2, 2, 3)]
    assert list(drop_processed(messages, InboundMessageId(*mark))) == messages[7 - kept :]
    assert drop_processed(messages, None) == messages


def test_messages_have_these_bytes_and_come_back() -> None:
    full, hashed = InboundMessage(1, b"ab"), HashedMessage(2, bytes(32))
    downward = AbridgedMessages((full,), (hashed,))
    horizontal = AbridgedMessages((replace(full, sender=TWO),), (replace(hashed, sender=TWO),))
    one, two, who = b"\x01\x00\x00\x00", b"\x02\x00\x00\x00", TWO.encode()
    encoded = b"\x04" + one + b"\x08ab" + b"\x04" + two + bytes(32)
    encoded += b"\x04" + who + one + b"\x08ab" + b"\x04" + who + two + bytes(32)
    data = InboundMessagesData(downward, horizontal)
    assert data.encode() == encoded
    assert InboundMessagesData.decode(encoded) == data
    assert (downward.hashed_bytes, horizontal.hashed_bytes) == (36, 40)
    for broken in (encoded[:-1], encoded + b"\x00", b"\xff"):
        with pytest.raises(CodecError):
            InboundMessagesData.decode(broken)


def crowded() -> World:
    """Return a world whose block has room for some messages of each kind, and a hash for the others."""
    world = World()
    world.subscribe(ALPHA, K[:3])
    world.publish(ALPHA, K[:3])
    for mark in (b"1", b"2"):
        world.receive([mark * 150, mark * 160])
        world.receive([], [mark * 170], sender=1)
        world.receive([], [mark * 180, mark * 190], sender=2)
        world.seal()
    return world


def with_downward(inherent: ParachainInherentData, *full: InboundMessage) -> ParachainInherentData:
    return replace(inherent, downward_messages=replace(inherent.downward_messages, full=full))


def with_horizontal(inherent: ParachainInherentData, *full: InboundMessage) -> ParachainInherentData:
    return replace(inherent, horizontal_messages=replace(inherent.horizontal_messages, full=full))


def test_full_and_hashed_messages_together_reach_the_heads_and_hashed_ones_come_again() -> None:
    world = crowded()
    first = world.block(TIGHT, seal=False)
    given = first.inherent
    assert given.downward_messages.full
    assert given.downward_messages.hashed
    assert given.horizontal_messages.full
    assert given.horizontal_messages.hashed
    assert first.outcome.meter.limit.proof_size == TIGHT - given.message_bytes
    seen = [*given.downward_messages.full], [*given.horizontal_messages.full]
    for _ in range(10):
        inherent = world.block(TIGHT).inherent
        seen[0].extend(inherent.downward_messages.full)
        seen[1].extend(inherent.horizontal_messages.full)
    assert [message.data[:1] + str(len(message.data)).encode() for message in seen[0]] == [
        b"1150", b"1160", b"2150", b"2160",
    ]  # fmt: skip
    assert [(message.sent_at, message.sender, len(message.data)) for message in seen[1]] == [
        (block, sender, size) for block in (1, 2) for sender, size in ((ONE, 170), (TWO, 180), (TWO, 190))
    ]
    relay = MessagingState.read(lambda keys: {key: world.relay.get(key) for key in keys}, SUBSCRIBER)
    inbound = world.parachain.inbound
    assert inbound.last_dmq_mqc_head.get() == relay.dmq_mqc_head
    assert inbound.last_hrmp_mqc_heads.get() == {sender: channel.head for sender, channel in relay.ingress.items()}


LIES: dict[str, tuple[Lie, type[InvalidMessages]]] = {
    "no downward message": (lambda it: replace(it, downward_messages=AbridgedMessages()), QueueHeadMismatch),
    "no horizontal message": (lambda it: replace(it, horizontal_messages=AbridgedMessages()), QueueHeadMismatch),
    "the first one hidden": (lambda it: with_downward(it, *it.downward_messages.full[1:]), InvalidMessages),
    "a hash hidden": (
        lambda it: replace(
            it, downward_messages=replace(it.downward_messages, hashed=it.downward_messages.hashed[:-1])
        ),
        QueueHeadMismatch,
    ),
    "one invented": (
        lambda it: with_downward(it, *it.downward_messages.full, InboundMessage(2, b"invented")),
        QueueHeadMismatch,
    ),
    "one altered": (
        lambda it: with_downward(it, *(replace(message, data=b"other") for message in it.downward_messages.full)),
        QueueHeadMismatch,
    ),
    "one redated": (
        lambda it: with_downward(it, *(replace(message, sent_at=2) for message in it.downward_messages.full)),
        QueueHeadMismatch,
    ),
    "one told twice": (
        lambda it: with_horizontal(it, it.horizontal_messages.full[0], *it.horizontal_messages.full),
        QueueHeadMismatch,
    ),
    "another sender": (
        lambda it: with_horizontal(it, replace(it.horizontal_messages.full[0], sender=TWO)),
        QueueHeadMismatch,
    ),
    "a sender without a channel": (
        lambda it: with_horizontal(it, replace(it.horizontal_messages.full[0], sender=ParaId(9))),
        NoSuchChannel,
    ),
    "a later one first": (
        lambda it: with_horizontal(it, replace(it.horizontal_messages.full[0], sent_at=3)),
        MessageOutOfOrder,
    ),
    "downward hashes alone": (
        lambda it: replace(it, downward_messages=hashes_alone(it.downward_messages)),
        NoMessageInFull,
    ),
    "horizontal hashes alone": (
        lambda it: replace(it, horizontal_messages=hashes_alone(it.horizontal_messages)),
        NoMessageInFull,
    ),
}


def hashes_alone(messages: AbridgedMessages) -> AbridgedMessages:
    return AbridgedMessages((), (*(message.hashed() for message in messages.full), *messages.hashed))


@pytest.mark.parametrize(("lie", "cause"), LIES.values(), ids=LIES)
def test_a_block_that_lies_about_messages_is_refused_without_a_trace(lie: Lie, cause: type[InvalidMessages]) -> None:
    world = crowded()
    panic = refused(world, lie, pubsub_bytes=TIGHT)
    assert isinstance(panic.cause, cause)
    assert str(panic).startswith(f"the block panicked: {type(panic.cause).__name__}: ")
    assert world.block(TIGHT, seal=False).outcome.messages.processed_downward_messages > 0


def test_messages_of_one_block_in_order_of_their_senders() -> None:
    world = World()
    for sender in (1, 2):
        world.receive([], [b"m"], sender=sender)
    cause = refused(world_sealed(world), lambda it: with_horizontal(it, *reversed(it.horizontal_messages.full))).cause
    assert isinstance(cause, MessageOutOfOrder)
    assert (cause.sent_at, cause.sender) == (1, ONE)


def world_sealed(world: World) -> World:
    world.seal()
    return world


def test_a_watermark_stops_before_a_block_that_is_processed_in_part() -> None:
    world = World()
    world.receive([], [b"a" * 100])
    world.seal()
    world.receive([], [b"b" * 100, b"c" * 100])
    world.seal()
    in_part = world.block(280, seal=False)
    assert [message.data[:1] for message in in_part.inherent.horizontal_messages.full] == [b"a", b"b"]
    assert in_part.outcome.messages == MessagesTaken(0, 1)
    assert world.parachain.inbound.last_horizontal.get() == InboundMessageId(2, 1)
    whole = world.block(280)
    assert whole.outcome.messages == MessagesTaken(0, 2)
    assert world.block().outcome.messages == MessagesTaken(0, world.number), "nothing waits: up to the relay parent"


def test_a_head_of_a_closed_channel_is_forgotten() -> None:
    world = World()
    for sender in (1, 2):
        world.receive([], [b"m"], sender=sender)
    world.block()
    world.hrmp.close_channels(ONE)
    world.block()
    assert world.parachain.inbound.last_hrmp_mqc_heads.get() == {TWO: by_hand((1, b"m"))}
    assert world.relay.get(hrmp_channel(ONE, SUBSCRIBER)) is None
    assert world.relay.get(hrmp_ingress_channel_index(SUBSCRIBER)) == b"\x04" + TWO.encode()
    world.receive([], [b"again"], sender=1)
    world.block()
    assert (world.parachain.inbound.last_hrmp_mqc_heads.get() or {})[ONE] == by_hand((3, b"again"))


def test_an_index_that_lists_a_channel_which_is_not_there_panics_the_block() -> None:
    world = World()
    world.relay.put(hrmp_ingress_channel_index(SUBSCRIBER), b"\x04" + ONE.encode())
    world.seal()
    with pytest.raises(ChannelMissing, match="from 1 to 2500"):
        world.prune()


def test_a_proof_without_the_entry_of_an_open_channel_is_refused() -> None:
    world = World(top_entries=400)
    world.receive([], [b"m"])
    world.seal()
    key = hrmp_channel(ONE, SUBSCRIBER)
    with_channels = set(world.prune()[0].relay_chain_state)
    fixed = set(world.relay.prove_read(world.relay.root, world.parachain.static_keys()))
    assert with_channels > fixed
    assert any(world.relay.get(key) == node for node in with_channels - fixed)
    panic = refused(world, lambda it: replace(it, relay_chain_state=tuple(fixed)))
    assert type(panic.cause).__name__ == "MissingNode"


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 400), max_size=4),
            st.dictionaries(st.integers(1, 3), st.lists(st.integers(0, 400), min_size=1, max_size=3), max_size=3),
            st.integers(200, 2_000),
        ),
        max_size=8,
    )
)
def test_every_message_arrives_once_and_in_order_whatever_fits(
    blocks: list[tuple[list[int], dict[int, list[int]], int]],
) -> None:
    world, count = World(), 0
    sent: list[tuple[ParaId | None, bytes]] = []
    seen: list[tuple[ParaId | None, bytes]] = []

    def data(size: int) -> bytes:
        nonlocal count
        count += 1
        return count.to_bytes(4, "little") + bytes(size)

    for downward, horizontal, budget in [*blocks, *[([], {}, 20_000)] * 2]:
        messages = [data(size) for size in downward]
        world.receive(messages)
        sent += [(None, message) for message in messages]
        for number in sorted(horizontal):
            messages = [data(size) for size in horizontal[number]]
            world.receive([], messages, sender=number)
            sent += [(ParaId(number), message) for message in messages]
        block = world.block(budget)
        given_full = (*block.inherent.downward_messages.full, *block.inherent.horizontal_messages.full)
        seen += [(message.sender, message.data) for message in given_full]
        world.dmp.prune(SUBSCRIBER, block.outcome.messages.processed_downward_messages)
        world.hrmp.prune(SUBSCRIBER, block.outcome.messages.hrmp_watermark)
    for sender in (None, *map(ParaId, (1, 2, 3))):
        assert [it for it in seen if it[0] == sender] == [it for it in sent if it[0] == sender]


@pytest.mark.parametrize("budget", [Remaining(percent=100), CumulusSixths(), Floor(1_000)], ids=repr)
@pytest.mark.parametrize("advancement", [Advanced(), Basic()], ids=repr)
def test_a_block_must_advance_horizontal_messages_until_the_next_might_not_fit(
    budget: BudgetPolicy, advancement: AdvancementPolicy
) -> None:
    """All splits of a queue, in blocks of several sizes."""
    sizes, longest, held_back = (300, 700, 10, 700, 500, 600), 700, set[bool]()
    for max_pov, full_count in product((2_000, 4_000, 6_000, 9_000, 12_000), range(1, 7)):
        world = World(budget=budget, policies=Policies(advancement=advancement))
        world.hrmp.open_channel(ONE, SUBSCRIBER, HrmpChannel(100, 100_000, longest))
        world.receive(horizontal=map(bytes, sizes), sender=ONE)
        world.seal()
        waiting = world.hrmp.messages(SUBSCRIBER, up_to=world.number)
        split = AbridgedMessages.of(waiting, full_count)

        def lie(inherent: ParachainInherentData, split: AbridgedMessages = split) -> ParachainInherentData:
            return replace(inherent, horizontal_messages=split)

        room = budget.share_out(lie(world.inherent((), max_pov)).usage()).horizontal_room
        is_held_back = full_count < len(sizes) and sum(sizes[:full_count]) + longest <= room
        held_back.add(is_held_back)
        if is_held_back and advancement == Advanced():
            cause = refused(world, lie, pubsub_bytes=max_pov).cause
            assert isinstance(cause, MessagesHeldBack)
            assert cause.args == (sum(sizes[:full_count]), longest, room)
        else:
            world.block(max_pov, tamper=lie, seal=False)
    assert held_back == {False, True}


def test_a_message_longer_than_its_channel_allows_is_refused_when_it_is_sent() -> None:
    world = World()
    world.hrmp.open_channel(ONE, SUBSCRIBER, HrmpChannel(100, 100_000, 700))
    assert world.hrmp.send(ONE, SUBSCRIBER, [bytes(701), bytes(700)], sent_at=1) == 701
    world.seal()
    assert [len(it.data) for it in world.hrmp.messages(SUBSCRIBER, up_to=1)] == [700]
