"""Collators that lie: their blocks are refused without a trace, and the chain goes on with the next honest one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from collator.networks import (
    EVERYTHING,
    PUBLISHER,
    SUBSCRIBER,
    deliveries,
    kept,
    key,
    keys,
    network,
    publish,
    run,
    told,
    values,
)
from ledger.watched import Watched
from relaycast_collator import Collation, Parachain
from relaycast_pallets.frame.system import DispatchError
from relaycast_pallets.parachain_system.pallet import IncompleteBelowLimit, Panic, ParachainInherentData
from relaycast_pallets.subscriber.result import ReadSource
from relaycast_pallets.subscriber.subscription import SubscribedKey, Subscriptions, TtlState
from relaycast_trie import CodecError, DuplicateNode, MissingNode, ProofError, RootMismatch, UnusedNodes, blake2_256
from relaycast_xcm import ParaId, Weight

Lie = Callable[[tuple[bytes, ...]], tuple[bytes, ...]]


def told_proof(inherent: ParachainInherentData, lie: Lie) -> ParachainInherentData:
    return replace(inherent, relay_chain_state=lie(inherent.relay_chain_state))


def prepared(*, size: int = 40) -> tuple[Watched, Parachain, Collation]:
    """Return a network with values on their way, and what an honest collator would build the next block from."""
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(8))
    for tick in range(3):
        publish(net, PUBLISHER, values(16, tick, size))
        net.step()
    collator = net.collators[SUBSCRIBER]
    return net, collator.parachain, collator.collate(net.relay_chain.head)


def everything(parachain: Parachain) -> Any:
    kept_values, outbox = dict(parachain.kept.values), list(parachain.outbox)
    return parachain.state.snapshot(), parachain.state.root, parachain.head, kept_values, outbox, parachain.kept.mark()


@contextmanager
def panics(parachain: Parachain) -> Iterator[pytest.ExceptionInfo[Panic]]:
    before = everything(parachain)
    with pytest.raises(Panic) as panic:
        yield panic
    assert everything(parachain) == before
    assert list(parachain.system.events) == []


def test_a_proof_that_lacks_any_one_node_is_refused() -> None:
    _, parachain, collation = prepared()
    nodes = collation.inherent.relay_chain_state
    causes = set()
    for node in nodes:
        lying = replace(collation.inherent, relay_chain_state=tuple(other for other in nodes if other != node))
        with panics(parachain) as panic:
            parachain.build_block(lying)
        causes.add(type(panic.value.cause))
    assert causes == {RootMismatch, MissingNode, IncompleteBelowLimit, UnusedNodes}
    assert len(parachain.build_block(collation.inherent).updates) == 8


@pytest.mark.parametrize(
    ("lie", "cause"),
    [
        (lambda nodes: (*nodes, b"\x00"), UnusedNodes),  # the empty trie: nothing points there
        (lambda nodes: (*nodes, bytes(2_000)), UnusedNodes),  # padding
        (lambda nodes: (*nodes, nodes[0]), DuplicateNode),  # the same node twice
        (lambda nodes: (nodes[0], *nodes), DuplicateNode),  # and in another place
        (lambda nodes: (), RootMismatch),
        (lambda nodes: nodes[:-1], ProofError),  # cut short
        (lambda nodes: (*nodes[:-1], nodes[-1] + b"\x00"), ProofError),  # another last node
        (lambda nodes: (*nodes[1:], bytes(len(nodes[0]))), ProofError),  # as many nodes, not the same
    ],
)
@pytest.mark.upstream("collator_includes_extraneous_data")
@pytest.mark.upstream("collator_inflated_proof")
def test_a_proof_with_other_nodes_is_refused(lie: Lie, cause: type[Exception]) -> None:
    _, parachain, collation = prepared()
    with panics(parachain) as panic:
        parachain.build_block(told_proof(collation.inherent, lie))
    assert isinstance(panic.value.cause, cause | IncompleteBelowLimit if cause is ProofError else cause)
    assert len(parachain.build_block(collation.inherent).updates) == 8


def test_a_node_of_an_unsubscribed_path_is_refused() -> None:
    """It is a true node of the relay chain's state, and nobody asked for it."""
    net, parachain, collation = prepared()
    child = net.relay_chain.prove_child_read(net.relay_chain.head, b"pubsub" + PUBLISHER.encode(), keys(16))
    foreign = sorted(child.nodes - set(collation.inherent.relay_chain_state))
    assert foreign
    with panics(parachain) as panic:
        parachain.build_block(told_proof(collation.inherent, lambda nodes: (*nodes, *foreign)))
    assert isinstance(panic.value.cause, UnusedNodes)
    assert set(panic.value.cause.hashes) == {blake2_256(node) for node in foreign}


def test_a_proof_under_another_root_is_refused() -> None:
    net, parachain, collation = prepared()
    data = replace(collation.inherent.validation_data, relay_parent_storage_root=bytes(32))
    with panics(parachain) as panic:
        parachain.build_block(replace(collation.inherent, validation_data=data))
    assert isinstance(panic.value.cause, RootMismatch)
    earlier = net.relay_chain.blocks[1]
    data = replace(collation.inherent.validation_data, relay_parent_storage_root=earlier.state_root)
    with panics(parachain):
        parachain.build_block(replace(collation.inherent, validation_data=data))


@pytest.mark.upstream("collator_omits_data_below_limit")
def test_a_chain_goes_on_with_the_next_honest_block() -> None:
    lies: dict[int, Lie] = {
        3: lambda nodes: nodes[:-1],
        4: lambda nodes: (*nodes, b"padding"),
        6: lambda nodes: nodes[1:],
    }
    net = network(subscribers=())

    def sometimes(inherent: ParachainInherentData) -> ParachainInherentData:
        return told_proof(inherent, lies.get(net.tick, lambda nodes: nodes))

    net.add_parachain(SUBSCRIBER, tamper=sometimes)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(4))
    records = []
    for tick in range(1, 9):
        publish(net, PUBLISHER, values(4, tick))
        records += net.recorded_step()
    assert [record.tick for record in records if record.panic] == [3, 4, 6]
    assert [record.number for record in records] == [1, 2, 2, 2, 3, 3, 4, 5]
    assert all(record.deliveries == () for record in records if record.panic)
    assert all(record.panic is None or record.panic.startswith("the block panicked: ") for record in records)
    assert [(d.published_at, d.conflated) for d in deliveries(records) if d.key == key(0)] == [(3, 0), (5, 1), (6, 0)]
    assert kept(net, SUBSCRIBER) == values(4, 6)
    assert net.invariants.ok, "a lie that is found out breaks no invariant"


def test_a_parachain_sends_nothing_while_its_collator_lies() -> None:
    net = network(publishers=(), subscribers=(SUBSCRIBER,))
    net.subscribe(SUBSCRIBER, 1_000, keys(1))
    lies_until = 3
    net.add_parachain(
        1_000,
        tamper=lambda inherent: told_proof(inherent, lambda nodes: nodes[1:] if net.tick <= lies_until else nodes),
    )
    net.parachains[ParaId(1_000)].publish(key(0), b"held up")
    records = run(net, 7)
    (delivery,) = deliveries(records, SUBSCRIBER)
    assert (delivery.published_at, delivery.delivered_at) == (1, 6)
    assert [record.para_id for record in records if record.panic] == [1_000] * 3, "a panic is on record"


def test_a_handler_hears_nothing_of_a_block_that_lies() -> None:
    _, parachain, collation = prepared()
    before = dict(parachain.kept.values)
    with panics(parachain):
        parachain.build_block(told_proof(collation.inherent, lambda nodes: (*nodes, b"foreign")))
    assert parachain.kept.values == before
    parachain.build_block(collation.inherent)
    assert parachain.kept.values != before
    assert parachain.kept.mark() == 0


class Refused(DispatchError):
    """The handler cannot take a value."""


class Wary:
    """A handler that keeps and publishes what it is told, and panics at the third value while it is told to."""

    def __init__(self, net: Watched) -> None:
        self.net = net
        self.left = 1_000

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return [(PUBLISHER, [key(number) for number in range(6)])], Weight.ZERO

    def on_data_updated(self, publisher: ParaId, name: SubscribedKey, data: bytes, ttl_state: TtlState) -> Weight:
        self.left -= 1
        if not self.left:
            raise Refused
        parachain = self.net.parachains[SUBSCRIBER]
        parachain.publish(name, data)
        return parachain.kept.on_data_updated(publisher, name, data, ttl_state)


def test_what_a_handler_kept_and_published_before_it_panicked_is_taken_back() -> None:
    net = network(subscribers=())
    handler = Wary(net)
    subscriber = net.add_parachain(SUBSCRIBER, handler=handler)
    publish(net, PUBLISHER, values(6))
    run(net, 3)
    publish(net, PUBLISHER, values(6, 1))
    run(net, 2)
    assert kept(net, SUBSCRIBER) == values(6)
    subscriber.publish(key(9), b"kept")
    collation = net.collators[SUBSCRIBER].collate(net.relay_chain.head)
    handler.left = 3
    with panics(subscriber) as panic:
        subscriber.build_block(collation.inherent)
    assert isinstance(panic.value.cause, Refused)
    assert [publication.key for publication in subscriber.outbox] == [key(9)]
    assert kept(net, SUBSCRIBER) == values(6)
    handler.left = 1_000
    net.step()
    assert kept(net, SUBSCRIBER) == values(6, 1)
    assert [len(message.publications) for (messages,) in [net._sent[SUBSCRIBER]] for message in messages] == [7]


@pytest.mark.upstream("collator_wrong_cursor")
def test_omissions_within_the_last_read_of_the_budget_are_allowed_and_nothing_is_lost() -> None:
    """The limit on omissions is the largest node: a collator may hold back what is smaller than that, for a while."""
    net = network(subscribers=())
    liars_ticks = range(3, 6)

    def omit_last_value(inherent: ParachainInherentData) -> ParachainInherentData:
        if net.tick not in liars_ticks:
            return inherent
        reads = net.collators[SUBSCRIBER].collate(net.relay_chain.blocks[-2]).pruning.reads
        last = max(at for at, read in enumerate(reads) if read.source is ReadSource.RELAY_VALUE)
        omitted = {read.node_hash for read in reads[last:]}
        return told_proof(inherent, lambda nodes: tuple(node for node in nodes if blake2_256(node) not in omitted))

    net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=2_800, tamper=omit_last_value)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(6))
    publish(net, PUBLISHER, values(6, 0, 700))
    records = run(net, 12)
    fewer = [record for record in records if record.tick in liars_ticks]
    assert [(record.panic, record.complete, len(record.deliveries)) for record in fewer[:2]] == [(None, False, 2)] * 2
    assert kept(net, SUBSCRIBER) == values(6, 0, 700)
    assert sorted(told(records)) == sorted(kept(net, SUBSCRIBER).items()), "each value once"
    assert net.invariants.ok


def test_an_inherent_that_is_no_proof_at_all_is_refused() -> None:
    _, parachain, collation = prepared()
    root = b"\x41" * 40
    data = replace(collation.inherent.validation_data, relay_parent_storage_root=blake2_256(root))
    with panics(parachain) as panic:
        parachain.build_block(replace(collation.inherent, validation_data=data, relay_chain_state=(root,)))
    assert isinstance(panic.value.cause, CodecError)
