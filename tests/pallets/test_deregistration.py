"""How a publisher ends: by its manager, by governance, or with its parachain; nothing of it stays behind."""

from collections.abc import Iterator

import pytest

from pallets.broadcaster_vectors import BOB, ORIGINS, RelayPallets, StepSequence, with_limits
from pallets.relay import OTHER_PARA, PARA, A, B, C, Relay
from relaycast_xcm.primitives import ParaId
from vector_fields import Vector, VectorSource, scenario
from yielded_vectors import yields

PRISTINE = StepSequence().before
REGISTERED = StepSequence().register(2_000).begin().before


def published(*names: str, ttl: int = 0) -> StepSequence:
    there = StepSequence().register(2_000)
    for name in names:
        there.publish(2_000, name, name.encode(), ttl=ttl)
    return there.begin()


# Cleaning up


@pytest.mark.upstream("cleanup_removes_all_keys_from_child_trie")
@pytest.mark.upstream("two_phase_cleanup_and_deregister_works")
@pytest.mark.parametrize("count", [1, 2, 5])
@yields("broadcaster/registration")
def test_a_clean_up_leaves_the_registration_alone(count: int) -> Iterator[Vector]:
    source = VectorSource(upstream="cleanup_published_data_works")
    cleaned = published(*"abcde"[:count]).clean_up(2_000)
    vector = cleaned.vector(f"clean-up/keys-{count}", f"{count} keys go, the registration stays", source)
    assert vector.after == REGISTERED
    yield vector


@yields("broadcaster/registration")
def test_a_clean_up_removes_times_to_live() -> Iterator[Vector]:
    source = VectorSource(upstream="cleanup_publisher_also_clears_ttl_data")
    vector = published("a", "b", ttl=10).clean_up(2_000).vector("clean-up/ttl", "TtlData goes too", source)
    assert vector.after == REGISTERED
    yield vector


@yields("broadcaster/registration")
def test_only_the_manager_cleans_up() -> Iterator[Vector]:
    manager = VectorSource(upstream="cleanup_requires_manager")
    other = published("a").clean_up(2_000, BOB)
    yield other.vector("clean-up/not-manager", "another account is refused", manager, refused="NotManager")
    root = published("a").call("cleanup_published_data", "root", para_id=2_000)
    why = "governance does not clean up by this call"
    yield root.vector("clean-up/root", why, VectorSource(trap="origins"), refused="BadOrigin")
    unregistered = StepSequence().publish(1_000, "a", b"\x01").begin().clean_up(1_000)
    yield unregistered.vector(
        "clean-up/unregistered",
        "a system parachain that never registered has no manager",
        VectorSource(upstream="cleanup_fails_if_not_registered"),
        refused="NotRegistered",
    )


@yields("broadcaster/registration")
def test_a_clean_up_without_data_is_refused() -> Iterator[Vector]:
    source = VectorSource(upstream="cleanup_fails_if_no_data")
    nothing = published().clean_up(2_000)
    yield nothing.vector("clean-up/no-data", "nothing is published", source, refused="NoDataToCleanup")
    twice = published("a").clean_up(2_000).clean_up(2_000)
    yield twice.vector("clean-up/twice", "after a clean-up there is nothing left", source, refused="NoDataToCleanup")


@yields("broadcaster/registration")
def test_a_publisher_publishes_again_after_a_clean_up() -> Iterator[Vector]:
    source = VectorSource(upstream="cleanup_published_data_works")
    there = published("a").clean_up(2_000).publish(2_000, "a", b"\x02")
    yield there.vector("clean-up/then-publish", "a publisher publishes again after it was cleaned up", source)


# Deregistration by the manager


@pytest.mark.upstream("deregister_publisher_works")
@pytest.mark.upstream("deregister_success")
@pytest.mark.upstream("deregister_fails_if_data_exists")  # the draft wants a clean-up first, the specification one call
@pytest.mark.upstream("deregister_clears_child_trie")
@pytest.mark.upstream("deregister_clears_child_trie_completely")
@yields("broadcaster/registration")
def test_one_call_deletes_the_data_and_releases_the_deposit() -> Iterator[Vector]:
    source = scenario("Publisher Deregistration / Voluntary deregistration")
    data = published("a", "b", "c").deregister(2_000)
    nothing = published().deregister(2_000)
    ttl = published("a", "b", ttl=50).deregister(2_000)
    for vector in (
        data.vector("deregister/data", "one call removes all data and releases the deposit", source),
        nothing.vector("deregister/no-data", "without data only the registration goes", source),
        ttl.vector("deregister/ttl", "TtlData goes too", VectorSource(upstream="deregister_clears_ttl_data")),
    ):
        assert vector.after == PRISTINE
        yield vector


@pytest.mark.upstream("deregister_wrong_manager")
@yields("broadcaster/registration")
def test_only_the_manager_deregisters() -> Iterator[Vector]:
    source = VectorSource(upstream="deregister_requires_manager")
    other = published("a").deregister(2_000, BOB)
    yield other.vector("deregister/not-manager", "another account is refused", source, refused="NotManager")
    for name in ("root", "parachain"):
        called = published("a").call("deregister_publisher", ORIGINS[name], para_id=2_000)
        source = VectorSource(trap="origins")
        yield called.vector(
            f"deregister/origin-{name}", f"the origin {name} is no manager", source, refused="BadOrigin"
        )


@pytest.mark.upstream("deregister_not_registered_fails")
@yields("broadcaster/registration")
def test_an_unregistered_parachain_cannot_be_deregistered() -> Iterator[Vector]:
    source, why = VectorSource(upstream="deregister_not_registered"), "a parachain that is not registered"
    yield StepSequence().deregister(2_000).vector("deregister/unknown", why, source, refused="NotRegistered")
    source = scenario("Publisher Deregistration / Force deregistration by governance")
    forced = StepSequence().force_deregister(2_000)
    yield forced.vector("force-deregister/unknown", why, source, refused="NotRegistered")


@yields("broadcaster/registration")
def test_a_publisher_that_left_may_come_back() -> Iterator[Vector]:
    source = scenario("Publisher Deregistration / Voluntary deregistration")
    again = published("a").deregister(2_000).publish(2_000, "a", b"\x01").register(2_000).publish(2_000, "a", b"\x02")
    why = "a publisher that left is refused, registers and publishes"
    yield again.vector("deregister/come-back", why, source, keeps="a")


@yields("broadcaster/registration")
def test_other_publishers_keep_their_data() -> Iterator[Vector]:
    source = scenario("Publisher Deregistration / Voluntary deregistration")
    others = StepSequence().register(2_000).register(2_001).publish(2_000, "a", b"\x01").publish(2_001, "a", b"\x02")
    yield others.begin().deregister(2_000).vector("deregister/others", "what others published stays", source)
    similar = with_limits(registration="open", max_publishers=5).register(7).register(7 + (1 << 24))
    similar.publish(7, "a", b"\x01").publish(7 + (1 << 24), "a", b"\x02").begin().deregister(7)
    yield similar.vector(
        "deregister/similar-id", "a parachain whose id differs in its last byte alone keeps its data", source
    )


# Deregistration by governance


@pytest.mark.upstream("force_deregister_works")
@pytest.mark.upstream("force_deregister_by_governance")
@pytest.mark.upstream("force_deregister_without_data")
@pytest.mark.parametrize(("how", "issued"), [("released", 10_000), ("slashed", 9_900)])
@yields("broadcaster/registration")
def test_governance_deregisters_and_the_config_decides_about_the_deposit(how: str, issued: int) -> Iterator[Vector]:
    source = scenario("Publisher Deregistration / Force deregistration by governance")

    def there() -> StepSequence:
        return with_limits(slash_on_force=how == "slashed")

    forced = there().register(2_000).publish(2_000, "a", b"\x01").begin().force_deregister(2_000)
    vector = forced.vector(f"force-deregister/{how}", f"all data goes, the deposit is {how}", source)
    assert RelayPallets(vector.config, vector.after).balances.total_issuance == issued
    yield vector
    two = there().register(2_000).register(2_001).begin().force_deregister(2_000).force_deregister(2_001)
    yield two.vector(f"force-deregister/{how}-one-of-two", f"one deposit of two is {how}, then the other", source)
    zero = there().force_register(2_000).begin().force_deregister(2_000)
    source = VectorSource(upstream="force_deregister_with_zero_deposit")
    why = "a deposit of zero is neither released nor slashed"
    yield zero.vector(f"force-deregister/{how}-zero", why, source)
    leaves = there().register(2_000).begin().deregister(2_000)
    source = scenario("Publisher Deregistration / Voluntary deregistration")
    why = "the manager's own call always releases"
    yield leaves.vector(f"force-deregister/{how}-not-forced", why, source)


@pytest.mark.parametrize("origin", ["signed", "none", "parachain"])
@yields("broadcaster/registration")
def test_only_root_deregisters_by_force(origin: str) -> Iterator[Vector]:
    yield (
        published("a")
        .call("force_deregister_publisher", ORIGINS[origin], para_id=2_000)
        .vector(
            f"force-deregister/origin-{origin}",
            f"the origin {origin} is not governance",
            VectorSource(upstream="force_deregister_requires_root"),
            refused="BadOrigin",
        )
    )


@yields("broadcaster/registration")
def test_a_system_parachain_publishes_on_after_it_was_deregistered() -> Iterator[Vector]:
    source = scenario("Publisher Deregistration / Force deregistration by governance")
    system = StepSequence().force_register(1_000).publish(1_000, "a", b"\x01").begin().force_deregister(1_000)
    why = "a system parachain publishes on, unregistered"
    yield system.publish(1_000, "b", b"\x02").vector("force-deregister/system", why, source)


# Off-boarding


@yields("broadcaster/registration")
def test_a_parachain_that_leaves_leaves_nothing_behind() -> Iterator[Vector]:
    cleans = VectorSource(upstream="offboarding_cleans_data")
    publisher = published("a", "b", ttl=9).offboard(2_000)
    nothing = published().offboard(2_000)
    unregistered = StepSequence().publish(1_000, "a", b"\x01").begin().offboard(1_000)
    unknown = StepSequence().offboard(2_000)
    slashing = with_limits(slash_on_force=True).register(2_000).begin().offboard(2_000)
    for vector in (
        publisher.vector("offboard/publisher", "data, TtlData and registration go, the deposit is released", cleans),
        nothing.vector("offboard/no-data", "a publisher without data", cleans),
        unregistered.vector(
            "offboard/unregistered",
            "a system parachain that never registered leaves nothing behind",
            VectorSource(trap="off-boarding of system parachains"),
        ),
        unknown.vector("offboard/unknown", "an unknown parachain changes nothing", cleans),
        slashing.vector("offboard/never-slashed", "off-boarding releases the deposit", cleans),
    ):
        assert vector.after == PRISTINE
        yield vector


@yields("broadcaster/registration")
def test_parachains_that_stay_keep_their_data() -> Iterator[Vector]:
    three = with_limits(max_publishers=3)
    for para_id in (2_000, 2_001, 2_002):
        three.register(para_id).publish(para_id, "a", b"\x01")
    source = VectorSource(upstream="cleanup_outgoing_publishers_works")
    three.begin().offboard(2_000).offboard(2_001)
    yield three.vector("offboard/two-of-three", "what the third published stays", source)


@yields("broadcaster/registration")
def test_the_scan_for_expired_keys_meets_only_those_that_are_left() -> Iterator[Vector]:
    cursor = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        cursor.publish(para_id, "a", b"\x01", ttl=5).publish(para_id, "b", b"\x01", ttl=50)
    cursor.begin().at(3).offboard(2_000).at(6).on_idle().at(60).on_idle()
    source = VectorSource(upstream="offboarding_cleans_data")
    yield cursor.vector("offboard/then-expire", "the scan meets only what is left", source)


def test_parachains_that_leave_together_are_forgotten_together(relay: Relay) -> None:
    gone, stays = [PARA, OTHER_PARA], ParaId(2_002)
    for para in (*gone, stays):
        relay.register(para)
        for key in (A, B, C):
            relay.publish(key, publisher=para)
    relay.broadcaster.offboard_publishers(gone)
    assert [relay.keys(para) for para in (*gone, stays)] == [set(), set(), {A, B, C}]
    assert (relay.held(), relay.free()) == (100, 9_900)
