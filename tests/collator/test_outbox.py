"""The outbox: publications leave in order, as many as a block may send and the relay chain's queue has room for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collator.networks import PUBLISHER, SUBSCRIBER, kept, key, keys, publish, run, told, value, values
from ledger.watched import Watched
from relaycast_collator import ChainSimulator, MessagesQueued, Outbox, Pace, Publication
from relaycast_pallets import DRAFT_MOCK
from relaycast_pallets.subscriber.subscription import SubscribedKey, Subscriptions, TtlState
from relaycast_xcm import ParaId, Publish, Weight
from relaycast_xcm.message import decode_versioned_xcm
from relaycast_xcm.primitives import U32_MAX
from relaycast_xcm.ump import POLKADOT_LIMITS, UpwardLimits

publications = st.builds(
    Publication,
    st.binary(min_size=32, max_size=32).map(SubscribedKey),
    st.integers(0, 2_048).map(bytes),
    st.sampled_from([0, 1, U32_MAX]),
    st.just(1),
    st.just(0),
)


def filled(count: int, size: int = 16, limits: UpwardLimits = POLKADOT_LIMITS) -> Outbox:
    outbox = Outbox(limits=limits)
    for number in range(count):
        outbox.put(Publication(key(number), value(number, size), 0, 1, 0))
    return outbox


def feeding_network(limits: UpwardLimits = POLKADOT_LIMITS, *, wanted: int, **options: Any) -> Watched:
    net = Watched(upward_limits=limits, **options)
    net.add_parachain(PUBLISHER)
    net.register_publisher(PUBLISHER)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(wanted))
    return net


@given(publications)
def test_an_instruction_has_the_bytes_that_it_is_said_to_have(publication: Publication) -> None:
    outbox = Outbox()
    outbox.put(publication)
    (message,) = outbox.take_messages()
    assert len(message.data) == 2 + publication.encoded_bytes
    (instruction,) = decode_versioned_xcm(message.data)
    assert instruction == Publish(publication.key, publication.value, publication.ttl)


@given(
    st.lists(publications, max_size=40),
    st.integers(2_100, 6_000),
    st.integers(0, 20_000),
    st.integers(1, 20),
    st.integers(0, 16),
)
def test_messages_keep_every_limit_and_the_order(
    waiting: list[Publication], message_bytes: int, room: int, per_candidate: int, queued: int
) -> None:
    limits = UpwardLimits(per_candidate, message_bytes, queue_count=16, queue_bytes=30_000)
    outbox = Outbox(limits=limits)
    for publication in waiting:
        outbox.put(publication)
    messages = outbox.take_messages(queued_count=queued, queued_bytes=30_000 - room)
    sent = [publication for message in messages for publication in message.publications]
    assert [*sent, *outbox] == waiting
    assert len(messages) <= min(per_candidate, 16 - queued)
    assert sum(len(message.data) for message in messages) <= room
    for message in messages:
        assert len(message.data) <= message_bytes
        assert 1 <= len(message.publications) <= 16
    if outbox and len(messages) < min(per_candidate, 16 - queued):
        taken = sum(len(message.data) for message in messages)
        assert 2 + next(iter(outbox)).encoded_bytes > room - taken, "what had a place was left behind"


def test_a_message_has_16_publications_and_a_block_16_messages() -> None:
    outbox = filled(300)
    messages = outbox.take_messages()
    assert [len(message.publications) for message in messages] == [16] * 16
    assert len(outbox) == 300 - 256
    assert [len(message.publications) for message in outbox.take_messages()] == [16, 16, 12]
    assert outbox.take_messages() == []


def test_a_message_ends_where_the_next_publication_would_not_fit() -> None:
    size = Publication(key(0), bytes(100), 0, 1, 0).encoded_bytes
    exact, short = 2 + 3 * size, 2 + 3 * size - 1
    for message_bytes, first in ((exact, 3), (short, 2)):
        outbox = filled(4, 100, UpwardLimits(message_bytes=message_bytes))
        assert len(outbox.take_messages()[0].publications) == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": bytes(31), "value": b""},
        {"key": b"price", "value": b""},
        {"key": key(0), "value": bytes(2_049)},
        {"key": key(0), "value": b"", "ttl": -1},
        {"key": key(0), "value": b"", "ttl": U32_MAX + 1},
    ],
)
def test_what_no_message_can_say_is_refused_at_once(wrong: dict[str, Any]) -> None:
    net = feeding_network(wanted=1)
    publisher = net.parachains[PUBLISHER]
    with pytest.raises(ValueError, match="got"):
        publisher.publish(wrong["key"], wrong["value"], ttl=wrong.get("ttl", 0))
    assert len(publisher.outbox) == 0
    publisher.publish(key(0), bytes(2_048), ttl=U32_MAX)
    assert told(run(net, 3)) == [(key(0), bytes(2_048))]


def test_what_no_message_of_this_relay_chain_can_hold_is_refused_at_once() -> None:
    net = feeding_network(UpwardLimits(message_bytes=200), wanted=1)
    with pytest.raises(ValueError, match="at most 200 bytes"):
        net.parachains[PUBLISHER].publish(key(0), bytes(200))


def test_what_a_block_cannot_send_waits_for_the_next_in_order() -> None:
    net = feeding_network(wanted=300)
    publish(net, PUBLISHER, values(300))
    records = run(net, 4)
    assert [len(record.deliveries) for record in records] == [0, 0, 256, 44]
    assert {delivery.key for delivery in records[2].deliveries} == set(keys(256))
    assert {delivery.latency_blocks for delivery in records[2].deliveries} == {2}
    assert {delivery.latency_blocks for delivery in records[3].deliveries} == {3}, "time in the outbox counts"
    assert kept(net, SUBSCRIBER) == values(300)


def test_a_full_queue_holds_publications_up_and_loses_none() -> None:
    """The relay chain has weight for one message a block: its queue fills, then the outbox."""
    publication = Weight(15_000_000 + 5 * 125_000_000)
    limits = UpwardLimits(queue_bytes=2_000, queue_count=2)
    net = feeding_network(limits, wanted=160, block_weight=Weight(20 * publication.ref_time, 1 << 20))
    publish(net, PUBLISHER, values(160))
    queued, records = [], []
    for _ in range(14):
        records += net.recorded_step()
        queued.append((net.relay_chain.upward.count(PUBLISHER), len(net.parachains[PUBLISHER].outbox)))
    assert max(count for count, _ in queued) == 1, "of two messages one runs and one waits"
    assert [waiting for _, waiting in queued[:3]] == [128, 112, 96]
    latencies = [delivery.latency_blocks for record in records for delivery in record.deliveries]
    assert len(latencies) == 160
    assert latencies == sorted(latencies)
    assert latencies[-1] == 11
    assert kept(net, SUBSCRIBER) == values(160)
    assert net.invariants.ok


@pytest.mark.parametrize("limits", [UpwardLimits(queue_count=3), UpwardLimits(queue_bytes=450)])
def test_blocks_of_one_tick_share_the_room_of_the_queue(limits: UpwardLimits) -> None:
    """Messages of earlier blocks are on their way and not queued yet, and take their room all the same."""
    limits = replace(limits, messages_per_candidate=2, message_bytes=200)
    net = ChainSimulator(upward_limits=limits)
    net.add_parachain(PUBLISHER, pace=Pace(cores=3))
    for number in range(40):
        net.parachains[PUBLISHER].publish(key(number), value(number, 100))
    net.step()
    queued = [it for fact in net.step() if isinstance(fact, MessagesQueued) for it in fact.messages]
    assert len(queued) == 3, "two of the first block, one of the second, none of the third"
    assert sum(len(message.data) for message in queued) <= limits.queue_bytes


def test_what_the_relay_chain_refuses_was_never_published() -> None:
    """A message ends at the instruction that fails: what stood before it counts, what stood after it does not."""
    net = feeding_network(wanted=3, broadcaster=DRAFT_MOCK)
    first, refused, after = keys(3)
    publish(net, PUBLISHER, {first: b"1", refused: bytes(1_025), after: b"3"})
    assert told(run(net, 3)) == [(first, b"1")]
    publish(net, PUBLISHER, {after: b"4"})
    ((delivery,),) = (record.deliveries for record in run(net, 3) if record.deliveries)
    assert (delivery.entry.value, delivery.conflated, delivery.latency_blocks) == (b"4", 0, 2)
    assert net.invariants.ok


def test_messages_that_others_sent_do_not_confuse_the_account() -> None:
    net = feeding_network(wanted=1)
    publish(net, PUBLISHER, {key(0): b"1"})
    net.step()
    net.relay_chain.upward.enqueue(PUBLISHER, b"not a message")
    net.relay_chain.upward.enqueue(ParaId(1_234), b"\xff")
    (delivery,) = [delivery for record in run(net, 2) for delivery in record.deliveries]
    assert delivery.latency_blocks == 2


def test_two_parachains_that_send_the_same_bytes_are_told_apart() -> None:
    net = feeding_network(wanted=1)
    twin = net.add_parachain(1_000)
    net.subscribe(SUBSCRIBER, 1_000, keys(1))
    publish(net, PUBLISHER, {key(0): b"the same"})
    net.step()
    twin.publish(key(0), b"the same")
    latencies = [(d.publisher, d.published_at, d.delivered_at) for record in run(net, 3) for d in record.deliveries]
    assert latencies == [(PUBLISHER, 1, 3), (ParaId(1_000), 2, 4)]


class Echo:
    """A parachain's own code: it publishes again what it is told."""

    def __init__(self, net: Watched) -> None:
        self.net = net

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return [(PUBLISHER, [key(0)])], Weight.ZERO

    def on_data_updated(self, publisher: ParaId, name: SubscribedKey, data: bytes, ttl_state: TtlState) -> Weight:
        self.net.parachains[ParaId(1_000)].publish(name, b"echo of " + data)
        return Weight.ZERO


def test_a_value_published_by_a_callback_leaves_with_the_same_block() -> None:
    net = feeding_network(wanted=1)
    net.add_parachain(1_000, handler=Echo(net))
    net.subscribe(SUBSCRIBER, 1_000, keys(1))
    publish(net, PUBLISHER, {key(0): b"1"})
    heard = [(d.entry.value, d.published_at, d.delivered_at) for record in run(net, 5) for d in record.deliveries]
    assert heard.count((b"echo of 1", 3, 5)) == 1
    assert net.invariants.ok
