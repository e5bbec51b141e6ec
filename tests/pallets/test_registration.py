"""Who becomes a publisher, what it costs, and how many there may be."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pallets.broadcaster_vectors import (
    ALICE,
    BOB,
    FUNDS,
    ORIGINS,
    RelayPallets,
    StepSequence,
    with_limits,
)
from pallets.relay import PARA, SYSTEM_PARA, A, Relay, refused
from relaycast_pallets import (
    DRAFT_MOCK,
    PRESETS,
    PUBLISHER_DEPOSIT,
    REGISTRATIONS,
    AnyParachain,
    Broadcaster,
    BroadcasterConfig,
    NotPublicParachain,
    Origin,
    TooManyPublishers,
)
from relaycast_xcm.primitives import ParaId
from vector_fields import Vector, VectorSource, scenario
from yielded_vectors import yields


@pytest.mark.upstream("register_publisher_works")
@pytest.mark.upstream("register_non_system_parachain_success")
@yields("broadcaster/registration")
def test_registering_holds_the_deposit_from_the_caller_who_becomes_the_manager() -> Iterator[Vector]:
    source = scenario("Publisher Registration / Public parachain registration")
    registered = (
        StepSequence()
        .register(2_000)
        .vector("register/public", "the deposit is held from the caller, who becomes the manager", source)
    )
    after = RelayPallets(registered.config, registered.after)
    assert (after.balances.held(ALICE, PUBLISHER_DEPOSIT), after.balances.free(ALICE)) == (100, 9_900)
    yield registered


@pytest.mark.upstream("register_non_system_parachain_high_id")
@pytest.mark.upstream("non_system_parachain_boundary")
@pytest.mark.upstream("non_system_parachain_boundary_id_2000")
@pytest.mark.parametrize("para_id", [2_000, 2_001, 5_000, 65_535, 65_536, (1 << 32) - 1])
@yields("broadcaster/registration")
def test_any_public_parachain_registers_and_publishes(para_id: int) -> Iterator[Vector]:
    source = scenario("Publisher Registration / Public parachain registration")
    there = StepSequence().register(para_id).publish(para_id, "a", b"\x01")
    yield there.vector(f"register/id-{para_id}", f"parachain {para_id} registers and publishes", source)


@pytest.mark.parametrize("para_id", [0, 1, 1_000, 1_999])
@yields("broadcaster/registration")
def test_an_account_registers_a_system_parachain_only_where_registration_is_open(para_id: int) -> Iterator[Vector]:
    source = VectorSource(trap="registration of system parachains")
    yield (
        StepSequence()
        .register(para_id)
        .vector(
            f"register/system-{para_id}",
            f"an account cannot register the system parachain {para_id}",
            source,
            refused="NotPublicParachain",
        )
    )
    open_to_all = with_limits(registration="open").register(para_id).publish(para_id, "a", b"\x01").clean_up(para_id)
    yield open_to_all.vector(
        f"register/open-{para_id}",
        f"where registration is open, who registers {para_id} may clean up what it published",
        source,
    )


def test_the_refusal_of_a_system_parachain_gives_its_id(relay: Relay) -> None:
    with refused(relay, NotPublicParachain) as refusal:
        relay.register(SYSTEM_PARA)
    assert refusal.value.args == (SYSTEM_PARA,)


@pytest.mark.upstream("cannot_register_twice")
@pytest.mark.upstream("register_already_registered")
@yields("broadcaster/registration")
def test_a_parachain_registers_once() -> Iterator[Vector]:
    source = scenario("Publisher Registration / Registration fails when already registered")
    for name, manager in (("same", ALICE), ("other", BOB)):
        there = StepSequence(accounts=((ALICE, FUNDS), (BOB, FUNDS))).register(2_000).begin()
        why = f"a second registration is refused to the {name} account"
        yield there.register(2_000, manager).vector(
            f"register/twice-by-{name}", why, source, refused="AlreadyRegistered"
        )
    forced = StepSequence().register(2_000).begin().force_register(2_000)
    why = "governance cannot register a publisher again"
    yield forced.vector("register/twice-by-root", why, source, refused="AlreadyRegistered")
    full = with_limits(max_publishers=1).register(2_000).begin().register(2_000)
    why = "AlreadyRegistered comes before TooManyPublishers"
    yield full.vector("register/twice-when-full", why, source, refused="AlreadyRegistered")


@pytest.mark.parametrize("origin", ["root", "none", "parachain"])
@yields("broadcaster/registration")
def test_only_an_account_registers(origin: str) -> Iterator[Vector]:
    yield (
        StepSequence()
        .call("register_publisher", ORIGINS[origin], para_id=2_000)
        .vector(
            f"register/origin-{origin}",
            f"the origin {origin} cannot call what accounts call",
            VectorSource(trap="origins"),
            refused="BadOrigin",
        )
    )


@pytest.mark.upstream("force_register_by_non_root")
@pytest.mark.parametrize("origin", ["signed", "none", "parachain"])
@yields("broadcaster/registration")
def test_only_root_registers_by_force(origin: str) -> Iterator[Vector]:
    there = StepSequence().call("force_register_publisher", ORIGINS[origin], manager=ALICE, deposit=0, para_id=2_000)
    yield there.vector(
        f"force-register/origin-{origin}",
        f"the origin {origin} is not governance",
        VectorSource(upstream="force_register_requires_root"),
        refused="BadOrigin",
    )


# Deposits


@pytest.mark.upstream("register_public_parachain_insufficient_balance")
@yields("broadcaster/registration")
def test_the_deposit_is_held_only_where_the_existential_deposit_stays_free() -> Iterator[Vector]:
    source = VectorSource(upstream="register_publisher_requires_sufficient_balance")
    for name, funds, why, refusal in (
        ("short", 100, "the deposit alone: the existential deposit must stay free", "InsufficientBalance"),
        ("exact", 101, "the deposit and the existential deposit: enough", None),
        ("low", 50, "less than the deposit", "InsufficientBalance"),
    ):
        there = StepSequence(accounts=((ALICE, funds),)).register(2_000)
        yield there.vector(f"deposit/{name}", why, source, refused=refusal)
    whole = StepSequence(accounts=((ALICE, 101),)).register(2_000).begin().deregister(2_000).register(2_001)
    yield whole.vector("deposit/exact-returned", "an account with the existential deposit alone gets it back", source)
    unknown = StepSequence(accounts=((BOB, FUNDS),)).register(2_000)
    why = "an account that does not exist cannot have a hold"
    yield unknown.vector("deposit/no-account", why, source, refused="CannotCreateHold")
    two = StepSequence(accounts=((ALICE, 250),)).register(2_000).register(2_001).register(2_002)
    why = "two deposits are held together; a third is beyond the balance"
    yield two.vector("deposit/adds-up", why, source, refused="InsufficientBalance")


@yields("broadcaster/registration")
def test_without_a_deposit_nothing_is_held() -> Iterator[Vector]:
    free = with_limits(publisher_deposit=0).register(2_000).deregister(2_000)
    source = VectorSource(trap="deposit of zero")
    yield free.vector("deposit/zero", "without a deposit nothing is held and nothing released", source)


@pytest.mark.parametrize(
    ("name", "deposit", "refusal"),
    [("u64", (1 << 64) - 1, None), ("u128", (1 << 128) - 2, None), ("all", (1 << 128) - 1, "InsufficientBalance")],
)
@yields("broadcaster/registration")
def test_a_deposit_may_be_as_large_as_a_balance(name: str, deposit: int, refusal: str | None) -> Iterator[Vector]:
    rich = StepSequence(accounts=((ALICE, (1 << 128) - 1),)).force_register(2_000, deposit=deposit)
    yield rich.vector(
        f"deposit/{name}",
        f"a deposit of {deposit} from an account with 2^128 - 1, which keeps the existential deposit",
        VectorSource(upstream="force_register_with_custom_deposit_works"),
        refused=refusal,
    )


@pytest.mark.upstream("force_register_by_root")
@pytest.mark.parametrize(
    ("deposit", "refusal"), [(1, None), (100, None), (9_999, None), (10_000, "InsufficientBalance")]
)
@yields("broadcaster/registration")
def test_governance_sets_the_deposit_and_the_manager_pays_it(deposit: int, refusal: str | None) -> Iterator[Vector]:
    source = VectorSource(upstream="force_register_with_custom_deposit_works")
    there, why = (
        StepSequence().force_register(2_000, deposit=deposit),
        f"governance lets {deposit} be held from the manager",
    )
    yield there.vector(f"force-register/deposit-{deposit}", why, source, refused=refusal)


@yields("broadcaster/registration")
def test_the_manager_that_governance_names_may_deregister() -> Iterator[Vector]:
    source = VectorSource(upstream="force_register_with_custom_deposit_works")
    managed = StepSequence(accounts=((ALICE, FUNDS), (BOB, FUNDS))).force_register(2_000, BOB, deposit=500).begin()
    yield (
        managed.deregister(2_000, ALICE)
        .deregister(2_000, BOB)
        .vector("force-register/manager", "the manager that governance names may deregister, and nobody else", source)
    )


@pytest.mark.upstream("system_parachain_boundary_id_1999")
@pytest.mark.parametrize("para_id", [0, 1, 1_000, 1_999, 2_000, 5_000])
@yields("broadcaster/registration")
def test_governance_registers_any_parachain_without_a_deposit(para_id: int) -> Iterator[Vector]:
    there = StepSequence().force_register(para_id).publish(para_id, "a", b"\x01")
    source = VectorSource(upstream="force_register_system_chain_works")
    yield there.vector(f"force-register/id-{para_id}", f"governance registers {para_id} without a deposit", source)


# The number of publishers


@pytest.mark.upstream("max_publishers_limit_enforced")
@pytest.mark.upstream("register_max_publishers_reached")
@pytest.mark.parametrize("limit", [0, 1, 2, 3])
@yields("broadcaster/registration")
def test_as_many_publishers_register_as_the_limit_says_and_not_one_more(limit: int) -> Iterator[Vector]:
    source = scenario("Publisher Registration / Registration fails when max publishers reached")
    there = with_limits(max_publishers=limit)
    for para_id in range(2_000, 2_000 + limit):
        there.register(para_id)
    why = f"the limit of {limit} publishers is reached"
    yield there.begin().register(3_000).vector(f"register/full-{limit}", why, source, refused="TooManyPublishers")


@yields("broadcaster/registration")
def test_only_registered_publishers_take_places() -> Iterator[Vector]:
    source = scenario("Publisher Registration / Registration fails when max publishers reached")
    full = with_limits(max_publishers=1).register(2_000).begin().force_register(2_001)
    why = "governance is bound by the limit, too"
    yield full.vector("register/full-for-root", why, source, refused="TooManyPublishers")
    left = with_limits(max_publishers=1).register(2_000).begin().deregister(2_000).register(2_001)
    yield left.vector("register/full-no-more", "a place that becomes free can be taken", source)
    there = with_limits(max_publishers=1).publish(1_000, "a", b"\x01").begin().register(2_000)
    yield there.vector(
        "register/full-but-system", "a system parachain that publishes unregistered takes no place", source
    )
    there = with_limits(max_publishers=1).force_register(1_000).begin().register(2_000)
    why = "a registered system parachain takes a place"
    yield there.vector("register/full-of-system", why, source, refused="TooManyPublishers")


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_above_a_lowered_limit_of_publishers_none_is_registered(limit: int) -> None:
    relay = Relay()
    for para in (2_000, 2_001):
        relay.register(ParaId(para))
    relay.broadcaster.config = replace(relay.broadcaster.config, max_publishers=limit)
    with refused(relay, TooManyPublishers):
        relay.register(ParaId(2_002))


# The pallet as a part of Python


def test_registration_policies_have_names_and_the_first_is_the_default() -> None:
    assert list(REGISTRATIONS) == ["public", "open"]
    assert BroadcasterConfig().registration == REGISTRATIONS["public"]
    assert all(preset.registration == REGISTRATIONS["public"] for preset in PRESETS.values())
    assert REGISTRATIONS["open"] == AnyParachain()


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
