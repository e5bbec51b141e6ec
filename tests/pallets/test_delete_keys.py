"""Keys deleted by their parachain, its manager, or governance: who may, and which keys are skipped."""

from collections.abc import Iterator

import pytest

from pallets.broadcaster_vectors import ALICE, BOB, ORIGINS, StepSequence, key, parachain, signed
from pallets.relay import PARA, A, Relay
from relaycast_pallets import Origin
from vector_fields import Vector, VectorSource, scenario
from yielded_vectors import yields

MISSING = VectorSource(upstream="delete_nonexistent_keys")


def published(names: str = "abc", *, ttl: int = 0, para_id: int = 2_000) -> StepSequence:
    there = StepSequence()
    if para_id >= 2_000:
        there.register(para_id)
    for name in names:
        there.publish(para_id, name, name.encode() * 3, ttl=ttl)
    return there.begin()


# By the parachain


@pytest.mark.upstream("delete_keys_by_owner")
@yields("broadcaster/deletion")
def test_a_parachain_deletes_its_own_keys() -> Iterator[Vector]:
    source = scenario("Manual Key Deletion / Parachain self-deletion")
    two = published().delete(2_000, "a", "b")
    yield two.vector("delete/two-of-three", "two keys go, the count is 2", source, keeps="c")
    for names, left in (("a", "bc"), ("c", "ab"), ("abc", ""), ("cba", "")):
        deleted = published().delete(2_000, *names)
        yield deleted.vector(f"delete/{names}", f"{len(names)} of 3 keys", source, keeps=left)
    named = published().delete_of(2_000, "a", origin=parachain(2_000))
    yield named.vector("delete/names-itself", "a parachain may name itself", source, keeps="bc")
    again = published().delete(2_000, *"abc").publish(2_000, "a", b"\x01")
    yield again.vector("delete/then-publish", "a publisher without keys begins anew", source, keeps="a")
    both = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        both.publish(para_id, "a", b"\x01")
    both.begin().delete(2_000, "a")
    yield both.vector("delete/same-key", "the other publisher keeps the key", source, keeps="")


@yields("broadcaster/deletion")
def test_a_repeated_key_counts_once() -> Iterator[Vector]:
    source = scenario("Manual Key Deletion / Parachain self-deletion")
    repeated = published().delete(2_000, "a", "a", "a")
    why = "a repeated key counts once, and is weighed three times"
    yield repeated.vector("delete/repeated", why, source, keeps="bc")


@pytest.mark.upstream("delete_nonexistent_keys_fails")  # the draft refuses with ``NoKeysToDelete``
@yields("broadcaster/deletion")
def test_keys_that_are_missing_are_skipped() -> Iterator[Vector]:
    some = published().delete(2_000, "a", "x", "b")
    yield some.vector("delete/some-missing", "missing keys are skipped", MISSING, keeps="c")
    for deleted in (
        published().delete(2_000, "x", "y").vector("delete/all-missing", "no key is there: no event", MISSING),
        published().delete(2_000).vector("delete/none", "an empty list: no event", MISSING),
        published("").delete(2_000, "a").vector("delete/no-data", "nothing was ever published", MISSING),
        published().force_delete(2_000, "x").vector("force-delete/missing", "no key is there: no event", MISSING),
    ):
        assert deleted.after == deleted.before
        yield deleted


@pytest.mark.parametrize("para_id", [0, 1_000, 1_999])
@yields("broadcaster/deletion")
def test_a_system_parachain_deletes_unregistered(para_id: int) -> Iterator[Vector]:
    source = VectorSource(trap="deletion by system parachains")
    why = f"system parachain {para_id} deletes although it never registered"
    yield published(para_id=para_id).delete(para_id, "a", "b").vector(f"delete/system-{para_id}", why, source)
    if para_id:
        forced = published(para_id=para_id).force_delete(para_id, "a")
        yield forced.vector(f"force-delete/system-{para_id}", "an unregistered system parachain", source)


@pytest.mark.parametrize(
    ("name", "publisher", "caller", "why", "refusal"),
    [
        ("not-owner", 2_000, 2_001, "a parachain names another one", "NotOwner"),
        ("system-not-owner", 2_000, 1_000, "a system parachain has no power over others", "NotOwner"),
        ("unregistered", None, 2_001, "a public parachain that is not registered", "NotRegistered"),
    ],
)
@yields("broadcaster/deletion")
def test_a_parachain_deletes_no_keys_of_others(
    name: str, publisher: int | None, caller: int, why: str, refusal: str
) -> Iterator[Vector]:
    source = VectorSource(upstream="delete_keys_not_owner")
    called = published().call("delete_keys", parachain(caller), keys=[key("a")], publisher=publisher)
    yield called.vector(f"delete/{name}", why, source, refused=refusal)


@yields("broadcaster/deletion")
def test_a_parachain_that_names_an_unregistered_one_learns_that_it_is_not_the_owner() -> Iterator[Vector]:
    source = VectorSource(upstream="delete_keys_not_owner")
    first = published().delete_of(2_000, "a", origin=parachain(2_001)).delete_of(3_000, "a", origin=parachain(3_001))
    yield first.vector("delete/owner-first", "NotOwner comes before NotRegistered", source, refused="NotOwner")


@yields("broadcaster/deletion")
def test_times_to_live_go_with_their_keys() -> Iterator[Vector]:
    source = VectorSource(upstream="delete_keys_removes_ttl_data")
    yield published(ttl=50).delete(2_000, "a").vector("delete/ttl", "TtlData of the key goes", source, keeps="bc")
    vector = (
        published(ttl=50).delete(2_000, *"abc").vector("delete/ttl-all", "the last key takes all items along", source)
    )
    assert vector.after == published("").before
    yield vector
    scanned = published("abcd", ttl=9).at(2).delete(2_000, "b").at(10).on_idle().at(11).on_idle()
    yield scanned.vector("delete/then-expire", "what was deleted does not expire", source, keeps="")


# By the manager


@pytest.mark.parametrize(("names", "left"), [("ab", "c"), ("abc", ""), ("ax", "bc")])
@yields("broadcaster/deletion")
def test_a_manager_deletes_keys_of_its_publisher(names: str, left: str) -> Iterator[Vector]:
    source = VectorSource(upstream="delete_keys_by_manager_works")
    deleted = published().delete_of(2_000, *names, origin=signed(ALICE))
    yield deleted.vector(f"delete/manager-{names}", "the manager names the publisher", source, keeps=left)


@yields("broadcaster/deletion")
def test_an_account_deletes_only_as_the_manager_of_the_publisher_that_it_names() -> Iterator[Vector]:
    source = VectorSource(upstream="delete_keys_by_manager_works")
    unnamed = published().call("delete_keys", signed(ALICE), keys=[key("a")], publisher=None)
    why = "a manager must name the publisher"
    yield unnamed.vector("delete/manager-names-none", why, source, refused="CannotBeMeant")
    other = published().delete_of(2_000, "a", origin=signed(BOB))
    no_manager = VectorSource(upstream="delete_keys_not_manager_fails")
    yield other.vector("delete/not-manager", "another account", no_manager, refused="NotManager")
    unknown = published().delete_of(3_000, "a", origin=signed(ALICE))
    why = "a publisher that is not registered has no manager"
    yield unknown.vector("delete/manager-of-unknown", why, source, refused="NotRegistered")
    system = published(para_id=1_000).delete_of(1_000, "a", origin=signed(ALICE))
    why = "an unregistered system parachain has no manager"
    yield system.vector("delete/manager-of-system", why, source, refused="NotRegistered")


@pytest.mark.parametrize("origin", ["root", "none"])
@yields("broadcaster/deletion")
def test_deletion_takes_a_parachain_or_an_account(origin: str) -> Iterator[Vector]:
    yield (
        published()
        .delete_of(2_000, "a", origin=ORIGINS[origin])
        .vector(
            f"delete/origin-{origin}",
            f"the origin {origin} is neither parachain nor manager",
            VectorSource(trap="origins"),
            refused="BadOrigin",
        )
    )


# By governance


@pytest.mark.upstream("force_delete_keys_by_governance")
@pytest.mark.upstream("force_delete_keys_by_governance_works")
@pytest.mark.parametrize(("names", "left"), [("a", "bc"), ("abc", ""), ("ax", "bc"), ("aab", "c")])
@yields("broadcaster/deletion")
def test_governance_deletes_keys_of_any_publisher(names: str, left: str) -> Iterator[Vector]:
    source = scenario("Manual Key Deletion / Governance force-deletion")
    forced = published().force_delete(2_000, *names)
    yield forced.vector(f"force-delete/{names}", "governance deletes keys of a publisher", source, keeps=left)


@yields("broadcaster/deletion")
def test_governance_too_needs_a_publisher() -> Iterator[Vector]:
    source = scenario("Manual Key Deletion / Governance force-deletion")
    unknown = published().force_delete(2_001, "a")
    yield unknown.vector("force-delete/unregistered", "no such publisher", source, refused="NotRegistered")


@pytest.mark.parametrize("origin", ["signed", "none", "parachain"])
@yields("broadcaster/deletion")
def test_only_root_deletes_by_force(origin: str) -> Iterator[Vector]:
    yield (
        published()
        .force_delete(2_000, "a", origin=ORIGINS[origin])
        .vector(
            f"force-delete/origin-{origin}",
            f"the origin {origin} is not governance",
            VectorSource(upstream="force_delete_keys_requires_root"),
            refused="BadOrigin",
        )
    )


# Slips of a caller in Python


@pytest.mark.parametrize("wrong", [b"short", bytes(33)])
def test_a_key_of_another_length_is_a_slip_of_the_caller(relay: Relay, wrong: bytes) -> None:
    relay.register()
    relay.publish(A)
    before = relay.everything()
    with pytest.raises(ValueError, match="32 bytes"):
        relay.broadcaster.delete_keys(Origin.parachain(PARA), [A, wrong])
    assert relay.everything() == before


def test_a_manager_has_to_say_whose_keys(relay: Relay) -> None:
    with pytest.raises(ValueError, match="names the publisher"):
        relay.broadcaster.delete_keys(Origin.signed(ALICE), [A])
