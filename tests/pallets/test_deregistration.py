"""How a publisher ends: by its manager, by governance, or with its parachain; nothing of it stays behind."""

import pytest

from pallets.relay import ALICE, BOB, OTHER_PARA, PARA, SYSTEM_PARA, A, B, C, Relay, hash_key, refused
from relaycast_pallets import (
    DRAFT_MOCK,
    BadOrigin,
    BroadcasterConfig,
    DataCleanedUp,
    NoDataToCleanup,
    NotManager,
    NotRegistered,
    Origin,
    PublisherDeregistered,
    derive_child_info,
)
from relaycast_xcm.primitives import ParaId

SLASHING = BroadcasterConfig(publisher_deposit=100, slash_on_force=True)
MANAGER = Origin.signed(ALICE)


def publishing(relay: Relay, para: ParaId = PARA) -> Relay:
    """Let ``para`` publish three keys, one of which never expires."""
    if not para.is_system:
        relay.register(para)
    for key, ttl in ((A, 500), (B, 1_000), (C, 0)):
        relay.publish(key, bytes(40), ttl=ttl, publisher=para)
    relay.system.events.take()
    return relay


@pytest.mark.scenario("Publisher Deregistration / Voluntary deregistration")
@pytest.mark.upstream("deregister_publisher_works")
@pytest.mark.upstream("deregister_success")
@pytest.mark.upstream("deregister_clears_child_trie")
@pytest.mark.upstream("deregister_clears_child_trie_completely")
@pytest.mark.upstream("deregister_clears_ttl_data")
@pytest.mark.upstream("cleanup_publisher_also_clears_ttl_data")
def test_one_call_deletes_the_data_and_releases_the_deposit(relay: Relay) -> None:
    pristine = relay.state.snapshot()
    publishing(relay)
    relay.state.commit()
    relay.broadcaster.deregister_publisher(MANAGER, PARA)
    assert (relay.held(), relay.free()) == (0, 10_000)
    assert relay.of_broadcaster() == [DataCleanedUp(PARA), PublisherDeregistered(PARA)]
    relay.state.commit()
    assert relay.state.snapshot() == pristine


@pytest.mark.upstream("deregister_fails_if_data_exists")
def test_data_is_no_obstacle_to_deregistration(relay: Relay) -> None:
    """The draft wants ``cleanup_published_data`` first; the specification wants one call."""
    publishing(relay)
    relay.broadcaster.deregister_publisher(MANAGER, PARA)
    assert relay.keys() == set()


def test_a_publisher_without_data_deregisters_without_a_word_about_data(relay: Relay) -> None:
    relay.register()
    relay.system.events.take()
    relay.broadcaster.deregister_publisher(MANAGER, PARA)
    assert relay.of_broadcaster() == [PublisherDeregistered(PARA)]


@pytest.mark.upstream("deregister_requires_manager")
@pytest.mark.upstream("deregister_wrong_manager")
def test_only_the_manager_deregisters(relay: Relay) -> None:
    publishing(relay)
    with refused(relay, NotManager):
        relay.broadcaster.deregister_publisher(Origin.signed(BOB), PARA)
    assert relay.held() == 100


@pytest.mark.upstream("deregister_not_registered")
@pytest.mark.upstream("deregister_not_registered_fails")
@pytest.mark.parametrize("para", [PARA, SYSTEM_PARA])
def test_what_is_not_registered_cannot_be_deregistered(relay: Relay, para: ParaId) -> None:
    with refused(relay, NotRegistered):
        relay.broadcaster.deregister_publisher(MANAGER, para)
    with refused(relay, NotRegistered):
        relay.broadcaster.force_deregister_publisher(Origin.root(), para)


@pytest.mark.parametrize("origin", [Origin.root(), Origin.parachain(PARA), Origin.none()])
def test_deregistration_takes_an_account(relay: Relay, origin: Origin) -> None:
    publishing(relay)
    with refused(relay, BadOrigin):
        relay.broadcaster.deregister_publisher(origin, PARA)


@pytest.mark.scenario("Publisher Deregistration / Force deregistration by governance")
@pytest.mark.upstream("force_deregister_works")
@pytest.mark.upstream("force_deregister_by_governance")
@pytest.mark.parametrize(("config", "free", "issued"), [(DRAFT_MOCK, 10_000, 30_000), (SLASHING, 9_900, 29_900)])
def test_governance_deregisters_and_the_config_decides_about_the_deposit(
    config: BroadcasterConfig, free: int, issued: int
) -> None:
    relay = publishing(Relay(config))
    relay.broadcaster.force_deregister_publisher(Origin.root(), PARA)
    assert relay.keys() == set()
    assert PARA not in relay.storage.registered_publishers
    assert (relay.held(), relay.free(), relay.balances.total_issuance) == (0, free, issued)
    assert relay.of_broadcaster() == [DataCleanedUp(PARA), PublisherDeregistered(PARA)]


@pytest.mark.parametrize("config", [DRAFT_MOCK, SLASHING])
def test_a_slash_takes_one_deposit_and_leaves_the_others_on_hold(config: BroadcasterConfig) -> None:
    relay = publishing(Relay(config))
    relay.register(OTHER_PARA)
    relay.broadcaster.force_deregister_publisher(Origin.root(), PARA)
    assert relay.held() == 100


@pytest.mark.upstream("force_deregister_without_data")
def test_governance_deregisters_without_data(relay: Relay) -> None:
    relay.register()
    relay.system.events.take()
    relay.broadcaster.force_deregister_publisher(Origin.root(), PARA)
    assert relay.free() == 10_000
    assert relay.of_broadcaster() == [PublisherDeregistered(PARA)]


@pytest.mark.upstream("force_deregister_with_zero_deposit")
@pytest.mark.parametrize("config", [DRAFT_MOCK, SLASHING])
def test_no_deposit_no_change_of_funds(config: BroadcasterConfig) -> None:
    relay = Relay(config)
    relay.broadcaster.force_register_publisher(Origin.root(), ALICE, 0, PARA)
    relay.broadcaster.force_deregister_publisher(Origin.root(), PARA)
    assert relay.free() == 10_000


@pytest.mark.upstream("force_deregister_requires_root")
@pytest.mark.parametrize("origin", [MANAGER, Origin.parachain(PARA), Origin.none()])
def test_only_root_deregisters_by_force(relay: Relay, origin: Origin) -> None:
    publishing(relay)
    with refused(relay, BadOrigin):
        relay.broadcaster.force_deregister_publisher(origin, PARA)


@pytest.mark.upstream("cleanup_published_data_works")
def test_a_manager_cleans_up_and_the_registration_stays(relay: Relay) -> None:
    relay.register()
    registered = relay.state.snapshot()
    for key in (A, B):
        relay.publish(key, ttl=10)
    relay.system.events.take()
    relay.broadcaster.cleanup_published_data(MANAGER, PARA)
    assert relay.state.snapshot() == registered
    assert relay.of_broadcaster() == [DataCleanedUp(PARA)]


@pytest.mark.upstream("cleanup_requires_manager")
def test_only_the_manager_cleans_up(relay: Relay) -> None:
    publishing(relay)
    with refused(relay, NotManager):
        relay.broadcaster.cleanup_published_data(Origin.signed(BOB), PARA)


@pytest.mark.upstream("cleanup_fails_if_no_data")
def test_there_must_be_something_to_clean_up(relay: Relay) -> None:
    relay.register()
    with refused(relay, NoDataToCleanup):
        relay.broadcaster.cleanup_published_data(MANAGER, PARA)


@pytest.mark.upstream("cleanup_fails_if_not_registered")
def test_an_unknown_publisher_cannot_be_cleaned_up(relay: Relay) -> None:
    with refused(relay, NotRegistered):
        relay.broadcaster.cleanup_published_data(MANAGER, PARA)


@pytest.mark.upstream("two_phase_cleanup_and_deregister_works")
def test_cleaning_up_before_deregistration_works_too(relay: Relay) -> None:
    publishing(relay)
    relay.broadcaster.cleanup_published_data(MANAGER, PARA)
    assert (relay.held(), relay.keys()) == (100, set())
    relay.broadcaster.deregister_publisher(MANAGER, PARA)
    assert (relay.held(), relay.free()) == (0, 10_000)


@pytest.mark.upstream("cleanup_removes_all_keys_from_child_trie")
def test_all_of_fifty_keys_go(relay: Relay) -> None:
    relay.register()
    keys = [hash_key(f"{batch}/{index}") for batch in range(5) for index in range(10)]
    for key in keys:
        relay.publish(key, b"v")
    assert relay.keys() == set(keys)
    relay.broadcaster.cleanup_published_data(MANAGER, PARA)
    assert [relay.value(key) for key in keys] == [None] * 50
    relay.state.commit()
    assert not relay.state.exists(derive_child_info(PARA).prefixed_storage_key())


@pytest.mark.upstream("cleanup_outgoing_publishers_works")
@pytest.mark.upstream("offboarding_cleans_data")
def test_parachains_that_leave_take_everything_with_them(relay: Relay) -> None:
    gone = [PARA, OTHER_PARA]
    for para in (*gone, ParaId(2_002)):
        publishing(relay, para)
    relay.broadcaster.offboard_publishers(gone)
    assert [relay.keys(para) for para in gone] == [set(), set()]
    assert relay.keys(ParaId(2_002)) == {A, B, C}
    assert (relay.held(), relay.free()) == (100, 9_900)
    assert [key for para, key, _ in relay.storage.ttl_data.items() if para in gone] == []


def test_an_unregistered_system_parachain_is_off_boarded_too(relay: Relay) -> None:
    pristine = relay.state.snapshot()
    publishing(relay, SYSTEM_PARA)
    relay.state.commit()
    relay.broadcaster.offboard_publishers([SYSTEM_PARA])
    assert relay.of_broadcaster() == [DataCleanedUp(SYSTEM_PARA)]
    relay.state.commit()
    assert relay.state.snapshot() == pristine


def test_off_boarding_the_unknown_changes_nothing(relay: Relay) -> None:
    before = relay.everything()
    relay.broadcaster.offboard_publishers([PARA, SYSTEM_PARA])
    assert relay.everything() == before
