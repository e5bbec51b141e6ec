"""Who becomes a publisher, what it costs, and how many there may be."""

from dataclasses import replace

import pytest

from pallets.relay import ALICE, BOB, LAST_SYSTEM_PARA, OTHER_PARA, PARA, SYSTEM_PARA, A, Relay, refused
from relaycast_pallets import (
    DRAFT_MOCK,
    PRESETS,
    PUBLISHER_DEPOSIT,
    REGISTRATIONS,
    AlreadyRegistered,
    AnyParachain,
    BadOrigin,
    Broadcaster,
    BroadcasterConfig,
    DataPublished,
    InsufficientBalance,
    NotPublicParachain,
    NotRegistered,
    Origin,
    PublisherRegistered,
    TooManyPublishers,
)
from relaycast_pallets.broadcaster.storage import PublisherInfo
from relaycast_xcm.primitives import ParaId


@pytest.mark.scenario("Publisher Registration / Public parachain registration")
@pytest.mark.upstream("register_publisher_works")
@pytest.mark.upstream("register_non_system_parachain_success")
def test_registering_holds_the_deposit_and_says_so(relay: Relay) -> None:
    relay.register(PARA, ALICE)
    assert (relay.held(ALICE), relay.free(ALICE)) == (100, 9_900)
    assert relay.storage.registered_publishers.get(PARA) == PublisherInfo(ALICE, 100)
    assert relay.of_broadcaster() == [PublisherRegistered(PARA, ALICE)]
    assert PUBLISHER_DEPOSIT.encode() == b"\xc8\x00"  # a first reason, of the pallet with index 200


@pytest.mark.upstream("register_non_system_parachain_high_id")
@pytest.mark.parametrize("para", [5_000, 2**32 - 1])
def test_any_public_id_can_register_and_then_publish(relay: Relay, para: int) -> None:
    relay.register(ParaId(para))
    relay.publish(A, b"value", publisher=ParaId(para))
    assert relay.held() == 100
    assert relay.value(A, ParaId(para)) == b"value"


@pytest.mark.scenario("Publisher Registration / System parachain publishes without registration")
@pytest.mark.upstream("system_parachain_publishes_without_registration")
@pytest.mark.upstream("publish_system_parachain_id_1000")
def test_a_system_parachain_publishes_unregistered(relay: Relay) -> None:
    relay.publish(A, b"value", publisher=SYSTEM_PARA)
    assert SYSTEM_PARA not in relay.storage.registered_publishers
    assert relay.storage.publisher_exists.get(SYSTEM_PARA) is True
    assert relay.keys(SYSTEM_PARA) == {A}
    assert relay.value(A, SYSTEM_PARA) == b"value"
    assert relay.of_broadcaster() == [DataPublished(SYSTEM_PARA, A)]


@pytest.mark.upstream("publish_system_parachain_id_1999")
@pytest.mark.upstream("system_parachain_boundary")
def test_1999_is_the_last_system_parachain(relay: Relay) -> None:
    relay.publish(A, publisher=LAST_SYSTEM_PARA)
    assert relay.keys(LAST_SYSTEM_PARA) == {A}


@pytest.mark.upstream("system_parachain_boundary_id_1999")
def test_1999_may_be_registered_all_the_same(relay: Relay) -> None:
    relay.broadcaster.force_register_publisher(Origin.root(), ALICE, 0, LAST_SYSTEM_PARA)
    relay.publish(A, publisher=LAST_SYSTEM_PARA)
    assert relay.keys(LAST_SYSTEM_PARA) == {A}


@pytest.mark.upstream("non_system_parachain_boundary_id_2000")
@pytest.mark.upstream("non_system_parachain_boundary")
def test_2000_is_the_first_that_registers(relay: Relay) -> None:
    with refused(relay, NotRegistered):
        relay.publish(A, publisher=ParaId(2_000))
    relay.register(ParaId(2_000))
    relay.publish(A, publisher=ParaId(2_000))
    assert relay.held() == 100
    assert relay.keys(ParaId(2_000)) == {A}


@pytest.mark.parametrize("para", [0, 1_000, 1_999])
def test_an_account_cannot_register_a_system_parachain(relay: Relay, para: int) -> None:
    """Whoever registers it is its manager: free to clean up what the parachain published."""
    relay.publish(A, b"value", publisher=ParaId(para))
    with refused(relay, NotPublicParachain) as refusal:
        relay.register(ParaId(para))
    assert refusal.value.args == (para,)


def test_open_registration_lets_an_account_manage_a_system_parachain() -> None:
    """The drafts' behaviour, and what is wrong with it."""
    relay = Relay(replace(DRAFT_MOCK, registration=AnyParachain()))
    relay.publish(A, b"value", publisher=SYSTEM_PARA)
    relay.register(SYSTEM_PARA)
    assert relay.held() == 100
    relay.broadcaster.cleanup_published_data(Origin.signed(ALICE), SYSTEM_PARA)
    assert relay.keys(SYSTEM_PARA) == set()


def test_registration_policies_have_names_and_the_first_is_the_default() -> None:
    assert list(REGISTRATIONS) == ["public", "open"]
    assert BroadcasterConfig().registration == REGISTRATIONS["public"]
    assert all(preset.registration == REGISTRATIONS["public"] for preset in PRESETS.values())
    assert REGISTRATIONS["open"] == AnyParachain()


@pytest.mark.scenario("Publisher Registration / Registration fails when already registered")
@pytest.mark.upstream("cannot_register_twice")
@pytest.mark.upstream("register_already_registered")
@pytest.mark.parametrize("second", [ALICE, BOB])
def test_a_parachain_registers_once(relay: Relay, second: bytes) -> None:
    relay.register(PARA, ALICE)
    with refused(relay, AlreadyRegistered):
        relay.register(PARA, second)
    with refused(relay, AlreadyRegistered):
        relay.broadcaster.force_register_publisher(Origin.root(), second, 0, PARA)
    assert (relay.held(ALICE), relay.held(BOB)) == (100, 0)


@pytest.mark.upstream("register_publisher_requires_sufficient_balance")
@pytest.mark.upstream("register_public_parachain_insufficient_balance")
@pytest.mark.parametrize(("funds", "enough"), [(50, False), (99, False), (100, True)])
def test_the_deposit_must_be_there(funds: int, enough: bool) -> None:
    relay = Relay(funds=funds)
    if enough:
        relay.register()
        assert relay.free() == 0
        return
    with refused(relay, InsufficientBalance):
        relay.register()
    assert PARA not in relay.storage.registered_publishers


@pytest.mark.scenario("Publisher Registration / Registration fails when max publishers reached")
@pytest.mark.upstream("max_publishers_limit_enforced")
@pytest.mark.upstream("register_max_publishers_reached")
def test_as_many_publishers_as_may_be_and_not_one_more() -> None:
    relay = Relay(DRAFT_MOCK, funds=1_000_000)
    for para in range(2_000, 3_000):
        relay.register(ParaId(para))
        relay.publish(A, b"first", publisher=ParaId(para))
    with refused(relay, TooManyPublishers):
        relay.register(ParaId(3_000))
    with refused(relay, TooManyPublishers):
        relay.broadcaster.force_register_publisher(Origin.root(), ALICE, 0, SYSTEM_PARA)
    relay.publish(A, b"second", publisher=ParaId(2_999))
    assert relay.value(A, ParaId(2_999)) == b"second"


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_above_a_lowered_limit_of_publishers_none_is_registered(limit: int) -> None:
    relay = Relay()
    for para in (2_000, 2_001):
        relay.register(ParaId(para))
    relay.broadcaster.config = replace(relay.broadcaster.config, max_publishers=limit)
    with refused(relay, TooManyPublishers):
        relay.register(ParaId(2_002))


@pytest.mark.upstream("force_register_by_root")
@pytest.mark.upstream("force_register_with_custom_deposit_works")
def test_root_sets_the_deposit_and_the_manager_pays_it(relay: Relay) -> None:
    relay.broadcaster.force_register_publisher(Origin.root(), BOB, 500, PARA)
    assert (relay.held(BOB), relay.free(BOB)) == (500, 9_500)
    assert relay.storage.registered_publishers.get(PARA) == PublisherInfo(BOB, 500)
    assert relay.of_broadcaster() == [PublisherRegistered(PARA, BOB)]


@pytest.mark.upstream("force_register_system_chain_works")
def test_root_registers_a_system_parachain_for_nothing(relay: Relay) -> None:
    relay.broadcaster.force_register_publisher(Origin.root(), ALICE, 0, SYSTEM_PARA)
    assert (relay.held(), relay.free()) == (0, 10_000)
    assert relay.storage.registered_publishers.get(SYSTEM_PARA) == PublisherInfo(ALICE, 0)


def test_a_forced_deposit_must_be_there_too(relay: Relay) -> None:
    with refused(relay, InsufficientBalance):
        relay.broadcaster.force_register_publisher(Origin.root(), BOB, 10_001, PARA)


@pytest.mark.upstream("force_register_requires_root")
@pytest.mark.upstream("force_register_by_non_root")
@pytest.mark.parametrize("origin", [Origin.signed(ALICE), Origin.parachain(PARA), Origin.none()])
def test_only_root_registers_by_force(relay: Relay, origin: Origin) -> None:
    with refused(relay, BadOrigin):
        relay.broadcaster.force_register_publisher(origin, ALICE, 0, PARA)


@pytest.mark.parametrize("origin", [Origin.root(), Origin.parachain(PARA), Origin.none()])
def test_only_an_account_registers(relay: Relay, origin: Origin) -> None:
    with refused(relay, BadOrigin):
        relay.broadcaster.register_publisher(origin, PARA)


def test_one_account_may_manage_many_publishers(relay: Relay) -> None:
    relay.register(PARA)
    relay.register(OTHER_PARA)
    relay.broadcaster.deregister_publisher(Origin.signed(ALICE), PARA)
    assert relay.held() == 100
    assert OTHER_PARA in relay.storage.registered_publishers


def test_without_a_chain_the_pallet_stands_on_one_of_its_own() -> None:
    alone, other = Broadcaster(config=DRAFT_MOCK), Broadcaster(config=DRAFT_MOCK)
    alone.balances.mint(ALICE, 150)
    alone.register_publisher(Origin.signed(ALICE), PARA)
    alone.handle_publish(PARA, A, b"value")
    assert alone.balances.free(ALICE) == 50
    assert (len(alone.storage.child(PARA)), len(other.storage.child(PARA))) == (1, 0)
    beside = Broadcaster(balances=alone.balances)
    assert beside.system is alone.system
    assert PARA in beside.storage.registered_publishers
