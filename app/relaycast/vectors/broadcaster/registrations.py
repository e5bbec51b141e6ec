"""Publishers come and go: registration, cleaning up, deregistration, governance, off-boarding."""

from collections.abc import Iterator

from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector
from relaycast.vectors.broadcaster.step_sequence import ALICE, BOB, FUNDS, StepSequence, parachain, signed, with_limits
from relaycast.vectors.vector import VectorSource, scenario

IDS = (2_000, 2_001, 5_000, 65_535, 65_536, (1 << 32) - 1)
SYSTEM_IDS = (0, 1, 1_000, 1_999)

_REGISTERED = scenario("Publisher Registration / Public parachain registration")
_TWICE = scenario("Publisher Registration / Registration fails when already registered")
_FULL = scenario("Publisher Registration / Registration fails when max publishers reached")
_LEAVES = scenario("Publisher Deregistration / Voluntary deregistration")
_FORCED = scenario("Publisher Deregistration / Force deregistration by governance")


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield the vectors; none is drawn from ``seed``."""
    del seed
    yield from _registering()
    yield from _refused_registrations()
    yield from _deposits()
    yield from _forced_registrations()
    yield from _full()
    yield from _cleaning_up()
    yield from _leaving()
    yield from _forced_out()
    yield from _offboarding()


def _registering() -> Iterator[BroadcasterVector]:
    yield (
        StepSequence()
        .register(2_000)
        .vector("register/public", "the deposit is held from the caller, who becomes the manager", _REGISTERED)
    )
    for para_id in IDS:
        yield (
            StepSequence()
            .register(para_id)
            .publish(para_id, "a", b"\x01")
            .vector(f"register/id-{para_id}", f"parachain {para_id} registers and publishes", _REGISTERED)
        )
    for para_id in SYSTEM_IDS:
        source = VectorSource(trap="registration of system parachains")
        yield (
            StepSequence()
            .register(para_id)
            .vector(f"register/system-{para_id}", f"an account cannot register the system parachain {para_id}", source)
        )
        open_to_all = with_limits(registration="open").register(para_id).publish(para_id, "a", b"\x01")
        yield open_to_all.clean_up(para_id).vector(
            f"register/open-{para_id}",
            f"where registration is open, who registers {para_id} may clean up what it published",
            source,
        )


def _refused_registrations() -> Iterator[BroadcasterVector]:
    for name, manager in (("same", ALICE), ("other", BOB)):
        there = StepSequence(accounts=((ALICE, FUNDS), (BOB, FUNDS))).register(2_000).begin()
        yield there.register(2_000, manager).vector(
            f"register/twice-by-{name}", f"a second registration is refused to the {name} account", _TWICE
        )
    forced = StepSequence().register(2_000).begin().force_register(2_000)
    yield forced.vector("register/twice-by-root", "governance cannot register a publisher again", _TWICE)
    for name, origin in (("root", "root"), ("none", "none"), ("parachain", parachain(2_000))):
        yield (
            StepSequence()
            .call("register_publisher", origin, para_id=2_000)
            .vector(
                f"register/origin-{name}",
                f"the origin {name} cannot call what accounts call",
                VectorSource(trap="origins"),
            )
        )
    for name, origin in (("signed", signed(ALICE)), ("none", "none"), ("parachain", parachain(2_000))):
        refused = StepSequence().call("force_register_publisher", origin, manager=ALICE, deposit=0, para_id=2_000)
        yield refused.vector(
            f"force-register/origin-{name}",
            f"the origin {name} is not governance",
            VectorSource(upstream="force_register_requires_root"),
        )
    both = with_limits(max_publishers=1).register(2_000).begin().register(2_000)
    yield both.vector("register/twice-when-full", "AlreadyRegistered comes before TooManyPublishers", _TWICE)


def _deposits() -> Iterator[BroadcasterVector]:
    source = VectorSource(upstream="register_publisher_requires_sufficient_balance")
    for name, funds, why in (
        ("short", 100, "the deposit alone: the existential deposit must stay free"),
        ("exact", 101, "the deposit and the existential deposit: enough"),
        ("low", 50, "less than the deposit"),
    ):
        yield StepSequence(accounts=((ALICE, funds),)).register(2_000).vector(f"deposit/{name}", why, source)
    whole = StepSequence(accounts=((ALICE, 101),)).register(2_000).begin().deregister(2_000).register(2_001)
    yield whole.vector("deposit/exact-returned", "an account with the existential deposit alone gets it back", source)
    unknown = StepSequence(accounts=((BOB, FUNDS),)).register(2_000)
    yield unknown.vector("deposit/no-account", "an account that does not exist cannot have a hold", source)
    two = StepSequence(accounts=((ALICE, 250),)).register(2_000).register(2_001).register(2_002)
    yield two.vector("deposit/adds-up", "two deposits are held together; a third is beyond the balance", source)
    free = with_limits(publisher_deposit=0)
    yield (
        free.register(2_000)
        .deregister(2_000)
        .vector(
            "deposit/zero",
            "without a deposit nothing is held and nothing released",
            VectorSource(trap="deposit of zero"),
        )
    )
    for name, deposit in (("u64", (1 << 64) - 1), ("u128", (1 << 128) - 2), ("all", (1 << 128) - 1)):
        rich = StepSequence(accounts=((ALICE, (1 << 128) - 1),)).force_register(2_000, deposit=deposit)
        yield rich.vector(
            f"deposit/{name}",
            f"a deposit of {deposit} from an account with 2^128 - 1, which keeps the existential deposit",
            VectorSource(upstream="force_register_with_custom_deposit_works"),
        )


def _forced_registrations() -> Iterator[BroadcasterVector]:
    system = VectorSource(upstream="force_register_system_chain_works")
    custom = VectorSource(upstream="force_register_with_custom_deposit_works")
    for para_id in (*SYSTEM_IDS, 2_000, 5_000):
        yield (
            StepSequence()
            .force_register(para_id)
            .publish(para_id, "a", b"\x01")
            .vector(f"force-register/id-{para_id}", f"governance registers {para_id} without a deposit", system)
        )
    for deposit in (1, 100, 9_999, 10_000):
        yield (
            StepSequence()
            .force_register(2_000, deposit=deposit)
            .vector(f"force-register/deposit-{deposit}", f"governance lets {deposit} be held from the manager", custom)
        )
    managed = StepSequence(accounts=((ALICE, FUNDS), (BOB, FUNDS))).force_register(2_000, BOB, deposit=500)
    yield (
        managed.begin()
        .deregister(2_000, ALICE)
        .deregister(2_000, BOB)
        .vector("force-register/manager", "the manager that governance names may deregister, and nobody else", custom)
    )


def _full() -> Iterator[BroadcasterVector]:
    for limit in (0, 1, 2, 3):
        there = with_limits(max_publishers=limit)
        for para_id in range(2_000, 2_000 + limit):
            there.register(para_id)
        full = there.begin().register(3_000)
        yield full.vector(f"register/full-{limit}", f"the limit of {limit} publishers is reached", _FULL)
    there = with_limits(max_publishers=1).register(2_000).begin()
    yield there.force_register(2_001).vector("register/full-for-root", "governance is bound by the limit, too", _FULL)
    there = with_limits(max_publishers=1).register(2_000).begin().deregister(2_000).register(2_001)
    yield there.vector("register/full-no-more", "a place that becomes free can be taken", _FULL)
    there = with_limits(max_publishers=1).publish(1_000, "a", b"\x01").begin().register(2_000)
    yield there.vector(
        "register/full-but-system", "a system parachain that publishes unregistered takes no place", _FULL
    )
    there = with_limits(max_publishers=1).force_register(1_000).begin().register(2_000)
    yield there.vector("register/full-of-system", "a registered system parachain takes a place", _FULL)


def _published(*names: str, ttl: int = 0) -> StepSequence:
    there = StepSequence().register(2_000)
    for name in names:
        there.publish(2_000, name, name.encode(), ttl=ttl)
    return there.begin()


def _cleaning_up() -> Iterator[BroadcasterVector]:
    works = VectorSource(upstream="cleanup_published_data_works")
    for count in (1, 2, 5):
        yield (
            _published(*"abcde"[:count])
            .clean_up(2_000)
            .vector(f"clean-up/keys-{count}", f"{count} keys go, the registration stays", works)
        )
    yield (
        _published("a", "b", ttl=10)
        .clean_up(2_000)
        .vector("clean-up/ttl", "TtlData goes too", VectorSource(upstream="cleanup_publisher_also_clears_ttl_data"))
    )
    yield (
        _published("a")
        .clean_up(2_000, BOB)
        .vector("clean-up/not-manager", "another account is refused", VectorSource(upstream="cleanup_requires_manager"))
    )
    yield (
        _published()
        .clean_up(2_000)
        .vector("clean-up/no-data", "nothing is published", VectorSource(upstream="cleanup_fails_if_no_data"))
    )
    yield (
        _published("a")
        .clean_up(2_000)
        .clean_up(2_000)
        .vector(
            "clean-up/twice",
            "after a clean-up there is nothing left",
            VectorSource(upstream="cleanup_fails_if_no_data"),
        )
    )
    yield (
        StepSequence()
        .publish(1_000, "a", b"\x01")
        .begin()
        .clean_up(1_000)
        .vector(
            "clean-up/unregistered",
            "a system parachain that never registered has no manager",
            VectorSource(upstream="cleanup_fails_if_not_registered"),
        )
    )
    yield (
        _published("a")
        .call("cleanup_published_data", "root", para_id=2_000)
        .vector("clean-up/root", "governance does not clean up by this call", VectorSource(trap="origins"))
    )
    yield (
        _published("a")
        .clean_up(2_000)
        .publish(2_000, "a", b"\x02")
        .vector("clean-up/then-publish", "a publisher publishes again after it was cleaned up", works)
    )


def _leaving() -> Iterator[BroadcasterVector]:
    yield (
        _published("a", "b", "c")
        .deregister(2_000)
        .vector("deregister/data", "one call removes all data and releases the deposit", _LEAVES)
    )
    yield (
        _published().deregister(2_000).vector("deregister/no-data", "without data only the registration goes", _LEAVES)
    )
    yield (
        _published("a", "b", ttl=50)
        .deregister(2_000)
        .vector("deregister/ttl", "TtlData goes too", VectorSource(upstream="deregister_clears_ttl_data"))
    )
    yield (
        _published("a")
        .deregister(2_000, BOB)
        .vector(
            "deregister/not-manager", "another account is refused", VectorSource(upstream="deregister_requires_manager")
        )
    )
    yield (
        StepSequence()
        .deregister(2_000)
        .vector(
            "deregister/unknown",
            "a parachain that is not registered",
            VectorSource(upstream="deregister_not_registered"),
        )
    )
    for name, origin in (("root", "root"), ("parachain", parachain(2_000))):
        yield (
            _published("a")
            .call("deregister_publisher", origin, para_id=2_000)
            .vector(f"deregister/origin-{name}", f"the origin {name} is no manager", VectorSource(trap="origins"))
        )
    again = _published("a").deregister(2_000).publish(2_000, "a", b"\x01").register(2_000).publish(2_000, "a", b"\x02")
    yield again.vector("deregister/come-back", "a publisher that left is refused, registers and publishes", _LEAVES)
    others = StepSequence().register(2_000).register(2_001).publish(2_000, "a", b"\x01").publish(2_001, "a", b"\x02")
    yield others.begin().deregister(2_000).vector("deregister/others", "what others published stays", _LEAVES)
    prefix = with_limits(registration="open", max_publishers=5).register(7).register(7 + (1 << 24))
    yield (
        prefix.publish(7, "a", b"\x01")
        .publish(7 + (1 << 24), "a", b"\x02")
        .begin()
        .deregister(7)
        .vector(
            "deregister/similar-id",
            "a parachain whose id differs in its last byte alone keeps its data",
            _LEAVES,
        )
    )


def _forced_out() -> Iterator[BroadcasterVector]:
    for slash in (False, True):
        how = "slashed" if slash else "released"
        there = with_limits(slash_on_force=slash).register(2_000).publish(2_000, "a", b"\x01").begin()
        yield there.force_deregister(2_000).vector(
            f"force-deregister/{how}", f"all data goes, the deposit is {how}", _FORCED
        )
        there = with_limits(slash_on_force=slash).register(2_000).register(2_001).begin()
        yield (
            there.force_deregister(2_000)
            .force_deregister(2_001)
            .vector(f"force-deregister/{how}-one-of-two", f"one deposit of two is {how}, then the other", _FORCED)
        )
        there = with_limits(slash_on_force=slash).force_register(2_000).begin()
        yield there.force_deregister(2_000).vector(
            f"force-deregister/{how}-zero",
            "a deposit of zero is neither released nor slashed",
            VectorSource(upstream="force_deregister_with_zero_deposit"),
        )
        there = with_limits(slash_on_force=slash).register(2_000).begin().deregister(2_000)
        yield there.vector(f"force-deregister/{how}-not-forced", "the manager's own call always releases", _LEAVES)
    yield (
        StepSequence()
        .force_deregister(2_000)
        .vector("force-deregister/unknown", "a parachain that is not registered", _FORCED)
    )
    for name, origin in (("signed", signed(ALICE)), ("none", "none"), ("parachain", parachain(2_000))):
        yield (
            _published("a")
            .call("force_deregister_publisher", origin, para_id=2_000)
            .vector(
                f"force-deregister/origin-{name}",
                f"the origin {name} is not governance",
                VectorSource(upstream="force_deregister_requires_root"),
            )
        )
    system = StepSequence().force_register(1_000).publish(1_000, "a", b"\x01").begin().force_deregister(1_000)
    yield system.publish(1_000, "b", b"\x02").vector(
        "force-deregister/system", "a system parachain publishes on, unregistered", _FORCED
    )


def _offboarding() -> Iterator[BroadcasterVector]:
    cleans = VectorSource(upstream="offboarding_cleans_data")
    yield (
        _published("a", "b", ttl=9)
        .offboard(2_000)
        .vector("offboard/publisher", "data, TtlData and registration go, the deposit is released", cleans)
    )
    yield _published().offboard(2_000).vector("offboard/no-data", "a publisher without data", cleans)
    yield (
        StepSequence()
        .publish(1_000, "a", b"\x01")
        .begin()
        .offboard(1_000)
        .vector(
            "offboard/unregistered",
            "a system parachain that never registered leaves nothing behind",
            VectorSource(trap="off-boarding of system parachains"),
        )
    )
    yield StepSequence().offboard(2_000).vector("offboard/unknown", "an unknown parachain changes nothing", cleans)
    slashing = with_limits(slash_on_force=True).register(2_000).begin().offboard(2_000)
    yield slashing.vector("offboard/never-slashed", "off-boarding releases the deposit", cleans)
    three = with_limits(max_publishers=3)
    for para_id in (2_000, 2_001, 2_002):
        three.register(para_id).publish(para_id, "a", b"\x01")
    yield (
        three.begin()
        .offboard(2_000)
        .offboard(2_001)
        .vector(
            "offboard/two-of-three",
            "what the third published stays",
            VectorSource(upstream="cleanup_outgoing_publishers_works"),
        )
    )
    cursor = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        cursor.publish(para_id, "a", b"\x01", ttl=5).publish(para_id, "b", b"\x01", ttl=50)
    yield (
        cursor.begin()
        .at(3)
        .offboard(2_000)
        .at(6)
        .on_idle()
        .at(60)
        .on_idle()
        .vector("offboard/then-expire", "the scan meets only what is left", cleans)
    )
