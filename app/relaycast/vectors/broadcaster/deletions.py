"""Keys deleted by their parachain, its manager, or governance."""

from collections.abc import Iterator

from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector
from relaycast.vectors.broadcaster.step_sequence import ALICE, BOB, StepSequence, key, parachain, signed
from relaycast.vectors.vector import VectorSource, scenario

_OWN = scenario("Manual Key Deletion / Parachain self-deletion")
_FORCED = scenario("Manual Key Deletion / Governance force-deletion")
_MANAGER = VectorSource(upstream="delete_keys_by_manager_works")
_MISSING = VectorSource(upstream="delete_nonexistent_keys")


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield the vectors; none is drawn from ``seed``."""
    del seed
    yield from _own()
    yield from _by_the_manager()
    yield from _refused()
    yield from _forced()
    yield from _effects()


def _there(names: str = "abc", *, ttl: int = 0, para_id: int = 2_000) -> StepSequence:
    there = StepSequence()
    if para_id >= 2_000:
        there.register(para_id)
    for name in names:
        there.publish(para_id, name, name.encode() * 3, ttl=ttl)
    return there.begin()


def _own() -> Iterator[BroadcasterVector]:
    yield _there().delete(2_000, "a", "b").vector("delete/two-of-three", "two keys go, the count is 2", _OWN)
    for names in ("a", "c", "abc", "cba"):
        yield _there().delete(2_000, *names).vector(f"delete/{names}", f"{len(names)} of 3 keys", _OWN)
    yield (
        _there()
        .delete(2_000, "a", "a", "a")
        .vector("delete/repeated", "a repeated key counts once, and is weighed three times", _OWN)
    )
    yield _there().delete(2_000, "a", "x", "b").vector("delete/some-missing", "missing keys are skipped", _MISSING)
    yield _there().delete(2_000, "x", "y").vector("delete/all-missing", "no key is there: no event", _MISSING)
    yield _there().delete(2_000).vector("delete/none", "an empty list: no event", _MISSING)
    yield _there("").delete(2_000, "a").vector("delete/no-data", "nothing was ever published", _MISSING)
    for para_id in (0, 1_000, 1_999):
        yield (
            _there(para_id=para_id)
            .delete(para_id, "a", "b")
            .vector(
                f"delete/system-{para_id}",
                f"system parachain {para_id} deletes although it never registered",
                VectorSource(trap="deletion by system parachains"),
            )
        )
    named = _there().call("delete_keys", parachain(2_000), keys=[key("a")], publisher=2_000)
    yield named.vector("delete/names-itself", "a parachain may name itself", _OWN)


def _by_the_manager() -> Iterator[BroadcasterVector]:
    for names in ("ab", "abc", "ax"):
        yield (
            _there()
            .delete_of(2_000, *names, origin=signed(ALICE))
            .vector(f"delete/manager-{names}", "the manager names the publisher", _MANAGER)
        )
    unnamed = _there().call("delete_keys", signed(ALICE), keys=[key("a")], publisher=None)
    yield unnamed.vector("delete/manager-names-none", "a manager must name the publisher", _MANAGER)
    yield (
        _there()
        .delete_of(2_000, "a", origin=signed(BOB))
        .vector("delete/not-manager", "another account", VectorSource(upstream="delete_keys_not_manager_fails"))
    )
    yield (
        _there()
        .delete_of(3_000, "a", origin=signed(ALICE))
        .vector("delete/manager-of-unknown", "a publisher that is not registered has no manager", _MANAGER)
    )
    yield (
        _there(para_id=1_000)
        .delete_of(1_000, "a", origin=signed(ALICE))
        .vector("delete/manager-of-system", "an unregistered system parachain has no manager", _MANAGER)
    )


def _refused() -> Iterator[BroadcasterVector]:
    owner = VectorSource(upstream="delete_keys_not_owner")
    yield (
        _there()
        .delete_of(2_000, "a", origin=parachain(2_001))
        .vector("delete/not-owner", "a parachain names another one", owner)
    )
    yield (
        _there()
        .delete_of(2_000, "a", origin=parachain(1_000))
        .vector("delete/system-not-owner", "a system parachain has no power over others", owner)
    )
    yield _there().delete(2_001, "a").vector("delete/unregistered", "a public parachain that is not registered", owner)
    yield (
        _there()
        .delete_of(2_000, "a", origin=parachain(2_001))
        .delete_of(3_000, "a", origin=parachain(3_001))
        .vector("delete/owner-first", "NotOwner comes before NotRegistered", owner)
    )
    for origin in ("root", "none"):
        yield (
            _there()
            .call("delete_keys", origin, keys=[key("a")], publisher=2_000)
            .vector(
                f"delete/origin-{origin}",
                f"the origin {origin} is neither parachain nor manager",
                VectorSource(trap="origins"),
            )
        )


def _forced() -> Iterator[BroadcasterVector]:
    for names in ("a", "abc", "ax", "aab"):
        yield (
            _there()
            .force_delete(2_000, *names)
            .vector(f"force-delete/{names}", "governance deletes keys of a publisher", _FORCED)
        )
    yield _there().force_delete(2_000, "x").vector("force-delete/missing", "no key is there: no event", _MISSING)
    yield _there().force_delete(2_001, "a").vector("force-delete/unregistered", "no such publisher", _FORCED)
    for para_id in (1_000, 1_999):
        yield (
            _there(para_id=para_id)
            .force_delete(para_id, "a")
            .vector(
                f"force-delete/system-{para_id}",
                "an unregistered system parachain",
                VectorSource(trap="deletion by system parachains"),
            )
        )
    requires = VectorSource(upstream="force_delete_keys_requires_root")
    for name, origin in (("signed", signed(ALICE)), ("none", "none"), ("parachain", parachain(2_000))):
        yield (
            _there()
            .force_delete(2_000, "a", origin=origin)
            .vector(f"force-delete/origin-{name}", f"the origin {name} is not governance", requires)
        )


def _effects() -> Iterator[BroadcasterVector]:
    removes = VectorSource(upstream="delete_keys_removes_ttl_data")
    yield _there(ttl=50).delete(2_000, "a").vector("delete/ttl", "TtlData of the key goes", removes)
    yield _there(ttl=50).delete(2_000, *"abc").vector("delete/ttl-all", "the last key takes all items along", removes)
    again = _there().delete(2_000, *"abc").publish(2_000, "a", b"\x01")
    yield again.vector("delete/then-publish", "a publisher without keys begins anew", _OWN)
    both = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        both.publish(para_id, "a", b"\x01")
    yield both.begin().delete(2_000, "a").vector("delete/same-key", "the other publisher keeps the key", _OWN)
    scanned = _there("abcd", ttl=9).at(2)
    scanned.delete(2_000, "b").at(10).on_idle().at(11).on_idle()
    yield scanned.vector("delete/then-expire", "what was deleted does not expire", removes)
