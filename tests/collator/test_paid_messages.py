"""Messages that pay: what Polkadot's barriers let in, who pays for it, and what becomes of the rest."""

from functools import partial

import pytest

from collator.networks import OTHER_PUBLISHER, PUBLISHER, SYSTEM_PUBLISHER, key, network
from relaycast_collator import ChainSimulator
from relaycast_collator.relay_chain import BLOCK_AUTHOR
from relaycast_pallets import DataPublished
from relaycast_pallets.asset_traps import AssetsTrapped, AssetTraps, trap_of
from relaycast_pallets.balances import Burned, Deposit, Issued, Minted, Transfer
from relaycast_pallets.message_queue import MessageProcessed, MessageProcessingFailed
from relaycast_pallets.xcm import WeightToFee
from relaycast_trie import blake2_256
from relaycast_xcm import (
    MAX_PAID_INSTRUCTIONS,
    AccountId32,
    Asset,
    BuyExecution,
    ClearOrigin,
    DescendOrigin,
    Instruction,
    Location,
    ParaId,
    PayFees,
    Publish,
    SetTopic,
    TransferAsset,
    UnpaidExecution,
    Weight,
    WithdrawAsset,
    encode_versioned_xcm,
    paid_message,
    parachain_account,
    sovereign_account,
)

FUNDS, FEES = 10_000_000_000, 200_000_000
HERE, PARA = Location.here(), Location.parachain(PUBLISHER)
ACCOUNT = parachain_account(PUBLISHER)
PUBLICATION = Publish(key(0), b"5.31")


def funded(*, funds: int = FUNDS, publishers: tuple[int, ...] = (PUBLISHER,)) -> ChainSimulator:
    """Return a network past block 1, whose publishers are registered and have ``funds``."""
    net = network(publishers=publishers)
    for publisher in publishers:
        if funds:
            net.call(partial(net.relay_chain.fund, ParaId(publisher), funds), declared=Weight.ZERO)
    net.step()
    return net


def send(net: ChainSimulator, *message: Instruction, sender: int = PUBLISHER) -> list[object]:
    """Let the relay chain execute one message in its next block and return that block's events."""
    net.relay_chain.upward.enqueue(ParaId(sender), encode_versioned_xcm(message))
    net.step()
    return list(net.relay_chain.head.events)


def test_a_paid_publication_is_published_and_its_author_earns_the_fee() -> None:
    net = funded()
    issued = net.relay_chain.balances.total_issuance
    message = paid_message([PUBLICATION], fees=FEES, account=PARA)
    events = send(net, *message)
    (processed,) = net.relay_chain.head.messages
    weight = net.relay_chain.executor.weigher.weigh(message)
    fee = WeightToFee().fee(weight)
    assert events == [
        Burned(ACCOUNT, FEES),
        DataPublished(PUBLISHER, key(0)),
        Minted(ACCOUNT, FEES - fee),
        Issued(fee),
        Deposit(BLOCK_AUTHOR, fee),
        MessageProcessed(processed.id, PUBLISHER, weight, success=True),
    ]
    balances = net.relay_chain.balances
    assert (balances.free(ACCOUNT), balances.free(BLOCK_AUTHOR)) == (FUNDS - fee, fee)
    assert balances.total_issuance == issued, "fees change hands, nothing is lost"
    entry = net.relay_chain.broadcaster.storage.entry(PUBLISHER, key(0))
    assert entry is not None
    assert entry.value == b"5.31"


def test_a_free_publication_costs_nothing_and_moves_nothing() -> None:
    net = funded()
    events = send(net, PUBLICATION)
    assert [type(event) for event in events] == [DataPublished, MessageProcessed]
    assert net.relay_chain.balances.free(ACCOUNT) == FUNDS


@pytest.mark.parametrize(
    "message",
    [
        (),
        (ClearOrigin(), PUBLICATION),  # neither free nor paid for
        (PUBLICATION, ClearOrigin()),
        (WithdrawAsset((Asset.fungible(HERE, 1),)), PUBLICATION),  # withdraws and does not pay
        (UnpaidExecution(), PUBLICATION),  # for system parachains alone
        (PUBLICATION,) * 17,
    ],
)
def test_a_message_that_does_not_pay_is_refused_by_every_barrier(message: tuple[Instruction, ...]) -> None:
    net = funded()
    before = net.relay_chain.balances.free(ACCOUNT), net.relay_chain.balances.total_issuance
    events = send(net, *message)
    if not message:
        assert [type(event) for event in events] == [MessageProcessed], "it weighs nothing: no credit is needed"
        return
    (failed,) = events
    assert isinstance(failed, MessageProcessingFailed)
    for barrier in ("TakeWeightCredit", "AllowPublishFrom", "AllowTopLevelPaid", "AllowExplicitUnpaid"):
        assert f"{barrier}" in failed.error
    assert (net.relay_chain.balances.free(ACCOUNT), net.relay_chain.balances.total_issuance) == before
    assert net.relay_chain.broadcaster.storage.entry(PUBLISHER, key(0)) is None


def test_an_account_without_funds_pays_for_nothing() -> None:
    net = funded(funds=FEES - 1)
    (processed,) = send(net, *paid_message([PUBLICATION], fees=FEES, account=PARA))
    assert isinstance(processed, MessageProcessed)
    assert processed.error is not None
    assert processed.error.startswith("instruction 0: FailedToTransactAsset: InsufficientBalance")
    assert net.relay_chain.balances.free(ACCOUNT) == FEES - 1


def test_fees_that_do_not_pay_for_the_weight_buy_nothing_and_are_trapped() -> None:
    net = funded()
    left = (Asset.fungible(HERE, 1_000),)
    for times in (1, 2):
        events = send(net, *paid_message([PUBLICATION], fees=1_000, account=PARA))
        assert events[:2] == [Burned(ACCOUNT, 1_000), AssetsTrapped(trap_of(PARA, left), PARA, "1000 of Here")]
        (processed,) = net.relay_chain.head.messages
        assert isinstance(events[2], MessageProcessed)
        assert (events[2].id, events[2].error) == (processed.id, "instruction 1: TooExpensive")
        assert AssetTraps(net.relay_chain.system).count.get(trap_of(PARA, left)) == times
    assert net.relay_chain.balances.free(ACCOUNT) == FUNDS - 2_000
    assert net.relay_chain.broadcaster.storage.entry(PUBLISHER, key(0)) is None


def test_what_a_failed_publication_did_not_need_comes_back() -> None:
    net = network(publishers=())
    net.add_parachain(PUBLISHER)
    net.call(lambda: net.relay_chain.fund(PUBLISHER, FUNDS), declared=Weight.ZERO)
    net.step()
    message = paid_message([PUBLICATION, PUBLICATION], fees=FEES, account=PARA)
    events = send(net, *message)
    weigher = net.relay_chain.executor.weigher
    prices, skipped = WeightToFee(), weigher.weigh_instruction(PUBLICATION)
    bought = prices.fee(weigher.weigh(message))
    assert [type(event) for event in events] == [Burned, Minted, Issued, Deposit, MessageProcessed]
    assert isinstance(events[-1], MessageProcessed)
    assert events[-1].error is not None
    assert events[-1].error.startswith("instruction 3: PublishFailed: NotRegistered")
    assert events[-1].weight_used == weigher.weigh(message) - skipped, "the second publication did not run"
    assert net.relay_chain.balances.free(BLOCK_AUTHOR) == bought - prices.fee(skipped)


def test_a_system_parachain_may_ask_for_execution_without_payment() -> None:
    net = funded(funds=0, publishers=())
    net.add_parachain(SYSTEM_PUBLISHER)
    events = send(net, UnpaidExecution(), PUBLICATION, SetTopic(bytes(32)), sender=SYSTEM_PUBLISHER)
    assert [type(event) for event in events] == [DataPublished, MessageProcessed]


def test_a_last_topic_is_the_id_under_which_a_message_is_told_of() -> None:
    net = funded()
    topic = blake2_256(b"topic")
    for message in ((PUBLICATION,), paid_message([PUBLICATION], fees=FEES, account=PARA)):
        processed = send(net, *message, SetTopic(topic))[-1]
        assert isinstance(processed, MessageProcessed)
        assert (processed.id, processed.success) == (topic, True)


def test_an_account_inside_a_parachain_pays_but_does_not_publish() -> None:
    net = funded()
    alice = AccountId32(None, bytes([1]) * 32)
    inside = Location.new(0, (*PARA.interior, alice))
    account = sovereign_account(inside)
    assert account is not None
    net.relay_chain.balances.mint(account, FUNDS)
    events = send(net, DescendOrigin((alice,)), *paid_message([PUBLICATION], fees=FEES, account=inside))
    assert isinstance(events[-1], MessageProcessed)
    assert events[-1].error == "instruction 4: NoPermission"
    assert 0 < FUNDS - net.relay_chain.balances.free(account) < FEES


def test_a_paid_message_may_pay_into_a_jar_and_move_tokens() -> None:
    net = funded()
    fees, gift = Asset.fungible(HERE, FEES), Asset.fungible(HERE, 5)
    events = send(
        net, WithdrawAsset((fees,)), PayFees(fees), TransferAsset((gift,), Location.parachain(OTHER_PUBLISHER))
    )
    assert Transfer(ACCOUNT, parachain_account(OTHER_PUBLISHER), 5) in events
    assert net.relay_chain.balances.free(parachain_account(OTHER_PUBLISHER)) == 5
    assert AssetsTrapped in {type(event) for event in events}, "nobody deposited what was left"


def test_an_asset_that_the_relay_chain_does_not_know_weighs_more_than_a_block() -> None:
    net = funded()
    token = Asset.fungible(Location.parachain(1_000), 1)
    (event,) = send(net, WithdrawAsset((token,)), BuyExecution(token, None), PUBLICATION)
    assert type(event).__name__ == "MessageOverweight"


def test_a_message_pays_for_as_many_publications_as_a_receiver_decodes() -> None:
    net = funded(funds=1_000 * FEES)
    publisher = net.parachains[PUBLISHER]
    for number in range(MAX_PAID_INSTRUCTIONS + 1):
        publisher.publish(key(number), b"", fees=FEES)
    first, second = publisher.take_messages()
    assert (len(first.publications), len(second.publications)) == (MAX_PAID_INSTRUCTIONS, 1)
    net.relay_chain.upward.receive(PUBLISHER, [first.data, second.data])
    net.step()
    assert [message.success for message in net.relay_chain.head.messages] == [True, True]  # type: ignore[union-attr]


def test_free_and_paid_publications_travel_in_messages_of_their_own_in_their_order() -> None:
    net = funded()
    publisher = net.parachains[PUBLISHER]
    for number, fees in enumerate((0, FEES, FEES, 0, 0, 1)):
        publisher.publish(key(number), b"", fees=fees)
    messages = publisher.take_messages()
    assert [[entry.key for entry in message.publications] for message in messages] == [
        [key(0)],
        [key(1), key(2)],
        [key(3), key(4)],
        [key(5)],
    ]
    assert [message.first for message in messages] == [0, 3, 0, 3]


def test_fees_above_what_a_message_can_hold_are_a_callers_slip() -> None:
    net = funded()
    for fees in (-1, 2**64):
        with pytest.raises(ValueError, match="fees are planck from 0"):
            net.parachains[PUBLISHER].publish(key(0), b"", fees=fees)
