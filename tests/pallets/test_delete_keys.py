"""Deleting keys by hand: who may, what is skipped, and what is told."""

import pytest

from pallets.relay import ALICE, BOB, OTHER_PARA, PARA, SYSTEM_PARA, A, B, C, Relay, refused
from relaycast_pallets import (
    BadOrigin,
    KeysDeleted,
    KeysForcedDeleted,
    NotManager,
    NotOwner,
    NotRegistered,
    Origin,
)
from relaycast_xcm.primitives import ParaId

MANAGER = Origin.signed(ALICE)
PARACHAIN = Origin.parachain(PARA)


@pytest.fixture
def publishing(relay: Relay) -> Relay:
    """Parachain 2000 has the keys A, B and C, the last two of which expire."""
    relay.register()
    for key, ttl in ((A, 0), (B, 100), (C, 200)):
        relay.publish(key, b"value", ttl=ttl)
    relay.system.events.take()
    return relay


@pytest.mark.scenario("Manual Key Deletion / Parachain self-deletion")
@pytest.mark.upstream("delete_keys_by_owner")
def test_a_parachain_deletes_its_own_keys(publishing: Relay) -> None:
    publishing.broadcaster.delete_keys(PARACHAIN, [A, B])
    assert publishing.keys() == {C}
    assert [publishing.value(key) for key in (A, B, C)] == [None, None, b"value"]
    assert publishing.storage.size_of(PARA) == 37
    assert publishing.of_broadcaster() == [KeysDeleted(PARA, 2)]


@pytest.mark.upstream("delete_keys_by_manager_works")
def test_a_manager_deletes_keys_of_its_publisher(publishing: Relay) -> None:
    publishing.broadcaster.delete_keys(MANAGER, [A, B], publisher=PARA)
    assert publishing.keys() == {C}
    assert publishing.of_broadcaster() == [KeysDeleted(PARA, 2)]


@pytest.mark.upstream("delete_keys_not_manager_fails")
@pytest.mark.upstream("delete_keys_not_owner")
@pytest.mark.parametrize("account", [BOB, bytes(32), b"\xff" * 32])
def test_another_account_may_not(publishing: Relay, account: bytes) -> None:
    with refused(publishing, NotManager):
        publishing.broadcaster.delete_keys(Origin.signed(account), [A], publisher=PARA)


def test_another_parachain_may_not(publishing: Relay) -> None:
    publishing.register(OTHER_PARA, BOB)
    for origin in (Origin.parachain(OTHER_PARA), Origin.parachain(SYSTEM_PARA)):
        with refused(publishing, NotOwner):
            publishing.broadcaster.delete_keys(origin, [A], publisher=PARA)


def test_a_parachain_may_name_itself(publishing: Relay) -> None:
    publishing.broadcaster.delete_keys(PARACHAIN, [A], publisher=ParaId(int(str(PARA))))
    assert publishing.value(A) is None


@pytest.mark.parametrize("origin", [Origin.root(), Origin.none()])
def test_deletion_takes_a_parachain_or_an_account(publishing: Relay, origin: Origin) -> None:
    with refused(publishing, BadOrigin):
        publishing.broadcaster.delete_keys(origin, [A], publisher=PARA)


@pytest.mark.parametrize(
    ("origin", "publisher"), [(Origin.parachain(OTHER_PARA), None), (MANAGER, OTHER_PARA), (MANAGER, SYSTEM_PARA)]
)
def test_an_unregistered_publisher_has_nothing_to_delete(
    publishing: Relay, origin: Origin, publisher: ParaId | None
) -> None:
    with refused(publishing, NotRegistered):
        publishing.broadcaster.delete_keys(origin, [A], publisher=publisher)


@pytest.mark.upstream("delete_nonexistent_keys")
@pytest.mark.upstream("delete_nonexistent_keys_fails")
@pytest.mark.parametrize("keys", [[], [bytes(32)], [bytes(32), b"\x01" * 32]])
def test_no_hit_is_no_change_and_no_event(publishing: Relay, keys: list[bytes]) -> None:
    """The draft refuses with ``NoKeysToDelete``."""
    before = publishing.everything()
    publishing.broadcaster.delete_keys(PARACHAIN, keys)
    publishing.broadcaster.force_delete_keys(Origin.root(), PARA, keys)
    assert publishing.everything() == before


def test_unknown_and_repeated_keys_do_not_count(publishing: Relay) -> None:
    publishing.broadcaster.delete_keys(PARACHAIN, [A, bytes(32), A, B, A])
    assert publishing.keys() == {C}
    assert publishing.of_broadcaster() == [KeysDeleted(PARA, 2)]


@pytest.mark.upstream("delete_keys_removes_ttl_data")
def test_the_time_to_live_goes_with_the_key(publishing: Relay) -> None:
    publishing.broadcaster.delete_keys(PARACHAIN, [B])
    assert publishing.storage.ttl_data.get(PARA, B) is None
    assert publishing.storage.ttl_data.get(PARA, C) == (200, 1)


def test_the_last_key_takes_the_counters_with_it(relay: Relay) -> None:
    relay.register()
    registered = relay.state.snapshot()
    relay.publish(A, ttl=5)
    relay.state.commit()
    relay.broadcaster.delete_keys(PARACHAIN, [A])
    relay.state.commit()
    assert relay.state.snapshot() == registered


def test_a_system_parachain_deletes_unregistered(relay: Relay) -> None:
    for key in (A, B, C):
        relay.publish(key, publisher=SYSTEM_PARA)
    relay.broadcaster.delete_keys(Origin.parachain(SYSTEM_PARA), [A])
    relay.broadcaster.force_delete_keys(Origin.root(), SYSTEM_PARA, [B])
    assert relay.keys(SYSTEM_PARA) == {C}
    assert relay.of_broadcaster()[3:] == [KeysDeleted(SYSTEM_PARA, 1), KeysForcedDeleted(SYSTEM_PARA, 1)]


@pytest.mark.scenario("Manual Key Deletion / Governance force-deletion")
@pytest.mark.upstream("force_delete_keys_by_governance")
@pytest.mark.upstream("force_delete_keys_by_governance_works")
def test_governance_deletes_keys_of_anyone(publishing: Relay) -> None:
    publishing.broadcaster.force_delete_keys(Origin.root(), PARA, [A, B, C])
    assert publishing.keys() == set()
    assert publishing.storage.ttl_data.count() == 0
    assert publishing.of_broadcaster() == [KeysForcedDeleted(PARA, 3)]


@pytest.mark.upstream("force_delete_keys_requires_root")
@pytest.mark.parametrize("origin", [MANAGER, PARACHAIN, Origin.none()])
def test_only_root_deletes_by_force(publishing: Relay, origin: Origin) -> None:
    with refused(publishing, BadOrigin):
        publishing.broadcaster.force_delete_keys(origin, PARA, [A])


def test_governance_too_needs_a_publisher(publishing: Relay) -> None:
    with refused(publishing, NotRegistered):
        publishing.broadcaster.force_delete_keys(Origin.root(), OTHER_PARA, [A])


@pytest.mark.parametrize("key", [b"short", bytes(33)])
def test_a_key_of_another_length_is_a_slip_of_the_caller(publishing: Relay, key: bytes) -> None:
    before = publishing.everything()
    with pytest.raises(ValueError, match="32 bytes"):
        publishing.broadcaster.delete_keys(PARACHAIN, [A, key])
    assert publishing.everything() == before


def test_a_manager_has_to_say_whose_keys(publishing: Relay) -> None:
    with pytest.raises(ValueError, match="names the publisher"):
        publishing.broadcaster.delete_keys(MANAGER, [A])
