"""How much of a block's proof pub-sub gets: messages first, then what is left."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    About,
    BlockVector,
    PovShare,
    executes,
    keys,
    of_bytes,
    shared_out,
    values,
)
from pallets.subscriber_world import PLENTY, World
from relaycast_pallets import CumulusSixths, Floor, PovUsage, Remaining, into_abridged
from relaycast_pallets.parachain_system.relay_budget import MIB, Abridged, BudgetPolicy, check_enough_messages_included
from relaycast_pallets.subscriber.policies import Advanced
from yielded_vectors import yields

MB = 1_000_000

usages = st.builds(
    PovUsage,
    st.integers(0, 20_000),
    st.lists(st.integers(0, 3_000).map(bytes), max_size=6).map(tuple),
    st.lists(st.integers(0, 3_000).map(bytes), max_size=6).map(tuple),
    st.integers(0, 30_000),
)


@pytest.mark.parametrize(
    ("limit", "full", "left"),
    [
        (150, 1, 50),  # the second does not fit
        (200, 2, 0),  # fitting exactly is fitting
        (399, 3, 49),  # the last one lacks a byte
        (400, 4, 0),
        (249, 2, 49),  # the small last message would fit, but order is kept
        (0, 0, 0),
    ],
)
def test_messages_are_kept_in_order_while_they_fit(limit: int, full: int, left: int) -> None:
    assert into_abridged([bytes(size) for size in (100, 100, 150, 50)], limit) == (full, left)


def test_no_messages_leave_everything() -> None:
    assert into_abridged([], 0) == (0, 0)
    assert into_abridged([], 7) == (0, 7)


def test_empty_messages_fit_into_nothing() -> None:
    assert into_abridged([b"", b"", b"x"], 0) == (2, 0)


@pytest.mark.parametrize(("messages", "full", "enough"), [(0, 0, True), (3, 0, False), (3, 1, True), (3, 3, True)])
def test_messages_must_move_on(messages: int, full: int, enough: bool) -> None:
    assert check_enough_messages_included([b"m"] * messages, full) is enough


@pytest.mark.parametrize(("used", "left"), [(500_000, 3_750_000), (4_250_000, 0), (4_250_001, 0)])
def test_pubsub_gets_what_a_block_of_5_mb_has_left_and_never_less_than_nothing(used: int, left: int) -> None:
    assert Remaining().share_out(PovUsage(5 * MB, other_bytes=used)).pubsub_bytes == left


def shared(about: About, *, downward: Sequence[int] = (), horizontal: Sequence[int] = ()) -> BlockVector:
    """Return a block whose budget is what messages of these lengths leave of 85 % of 5 MiB."""
    share = shared_out(
        PovShare(
            max_pov_size=5 * MIB,
            percent=85,
            downward=tuple(downward),
            horizontal=tuple(horizontal),
            downward_full=0,
            horizontal_full=0,
            pubsub_bytes=0,
        )
    )
    budget, crowded = of_bytes(share.pubsub_bytes), bool(downward or horizontal)
    return replace(values().block(about, budget=budget, crowded=crowded, seal=False), share=share)


@pytest.mark.upstream("light_block_large_budget")
@yields("subscriber/budget-scenarios")
def test_a_light_block_leaves_pubsub_most_of_it() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Light block with large pub-sub budget",
        "light-block",
        "500 kB of messages leave 3.9 MB for pub-sub",
    )
    block = shared(about, horizontal=[50_000] * 10)
    assert block.budget.proof_size == 3_956_448
    yield block


@pytest.mark.upstream("heavy_block_small_budget")
@yields("subscriber/budget-scenarios")
def test_a_heavy_block_leaves_pubsub_little_of_it() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Heavy block with small pub-sub budget",
        "heavy-block",
        "4 MiB of messages leave 262,144 bytes for pub-sub",
    )
    block = shared(about, horizontal=[MIB // 16] * 64)
    assert block.budget.proof_size == 262_144
    yield block


@pytest.mark.upstream("full_block_no_budget")
@pytest.mark.upstream("zero_budget_graceful_skip")
@pytest.mark.upstream("process_proof_with_zero_budget_returns_incomplete")
@pytest.mark.upstream("process_proof_stores_cursor_on_incomplete")
@pytest.mark.upstream("process_proof_zero_budget_graceful_skip")
@pytest.mark.upstream("zero_budget_processes_nothing")
@pytest.mark.upstream("zero_budget_only_static_keys")
@yields("subscriber/budget-scenarios")
def test_a_full_block_skips_pubsub_and_the_next_one_delivers() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Full block with no pub-sub budget",
        "full-block",
        "no byte is left: static keys alone are proven, the pass stops",
    )
    block = shared(about, downward=[4_456_448 // 4] * 4)
    assert (block.budget.proof_size, block.expect.callbacks) == (0, ())
    yield block
    network = values()
    network.block(about, budget=of_bytes(0), crowded=True, seal=False)
    yield network.block(about.at("retried", "the block after a full one delivers"), seal=False)


@pytest.mark.upstream("process_proof_tiny_budget_returns_incomplete_immediately")
@pytest.mark.upstream("incomplete_at_budget_limit_sets_cursor")
@yields("subscriber/budget-scenarios")
def test_pubsub_gets_what_messages_leave() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Budget calculation",
        "budget-calculation",
        "85 % of the largest proof where no message waits",
    )
    yield shared(about)
    abridged = about.at(
        "abridged", "the first message that does not fit is hashed, and all after it: each hash takes bytes"
    )
    yield shared(abridged, downward=[100_000] * 30, horizontal=[60_000] * 30)
    in_full = about.at("first-in-full", "the first message of each kind stays in full, whatever it leaves")
    yield shared(in_full, downward=[4_456_448, 10], horizontal=[5_000])
    yield shared(about.at("boundary", "messages that leave one byte"), downward=[4_456_448 - 1])


@pytest.mark.parametrize(
    ("name", "horizontal", "reserved"),
    [
        ("first", [5_000], 5_000),
        ("short-first", [30], 40),
        ("equal-first", [40], 40),
        ("others", [5_000, 90_000, 70], 5_080),
    ],
)
@pytest.mark.parametrize("more", [0, 1])
@yields("subscriber/budget-scenarios")
def test_a_second_downward_message_leaves_what_is_kept_for_horizontal_ones(
    name: str, horizontal: list[int], reserved: int, more: int
) -> Iterator[BlockVector]:
    size = 4_456_448 - 1_000_000 - reserved + more
    about = executes(
        "PoV Budget Constraint / Budget calculation",
        f"budget-calculation/reserved-{name}-{more}",
        f"{reserved} bytes are kept for horizontal messages: a second downward one of {size} bytes "
        f"{'does not fit' if more else 'just fits'}",
    )
    yield shared(about, downward=[1_000_000, size], horizontal=horizontal)


@pytest.mark.upstream("budget_after_dmq_hrmp_correct")
def test_the_budget_is_what_messages_leave_of_85_percent() -> None:
    usage = PovUsage(10_001, (bytes(3_000), bytes(2_000)), (bytes(3_000), bytes(600), bytes(1)))
    # 10,001 * 85 / 100 rounds down to 8,500; the fourth message does not fit into 500 and ends the list: two hashes of
    # 40 bytes stand for it and the last one
    assert Remaining().share_out(usage) == Abridged(2, 1, 500 - 2 * 40)
    assert Remaining(50).share_out(usage) == Abridged(1, 1, 0, 3_000 + 36 + 3_000 + 2 * 40 - 5_000)


@pytest.mark.parametrize(
    ("percent", "max_pov", "allowed"),
    [(85, 5 * MIB, 4_456_448), (85, 10 * MIB, 8_912_896), (50, 5 * MIB, 2_621_440), (50, 10 * MIB, 5_242_880)],
)
def test_presets_of_real_chains(percent: int, max_pov: int, allowed: int) -> None:
    assert Remaining(percent).share_out(PovUsage(max_pov)).pubsub_bytes == allowed


@pytest.mark.parametrize(
    ("downward", "horizontal", "expected"),
    [
        ((), (), Abridged(0, 0, 2_000)),  # never more than a third of the block
        ((1_000,), (1_000,), Abridged(1, 1, 0)),
        ((1_001,), (2_000,), Abridged(1, 1, 0, 1_001)),  # the first of each kind stays in full, however long
        ((1_001, 1), (), Abridged(1, 0, 999)),  # what it exceeds its sixth by is taken from pub-sub
        ((400,), (1_000, 700), Abridged(1, 1, 600)),
    ],
)
def test_cumulus_shares_out_sixths(downward: tuple[int, ...], horizontal: tuple[int, ...], expected: Abridged) -> None:
    usage = PovUsage(6_000, tuple(map(bytes, downward)), tuple(map(bytes, horizontal)), other_bytes=5_000)
    assert CumulusSixths().share_out(usage) == expected


def test_a_floor_is_taken_from_messages() -> None:
    usage = PovUsage(10_000, (bytes(5_000),), (bytes(3_400),))
    assert Remaining().share_out(usage) == Abridged(1, 1, 100)
    assert Floor(100).share_out(usage) == Abridged(1, 1, 100)
    # a floor takes room, and never the first message of a kind: without it the block would be refused
    assert Floor(500).share_out(usage) == Abridged(1, 1, 500, 400)
    assert Floor(9_000).share_out(usage) == Abridged(1, 1, 8_500, 8_400)  # no more than is allowed
    several = PovUsage(10_000, (bytes(3_000), bytes(2_500)), (bytes(3_000),))
    assert Floor(500).share_out(several) == Abridged(1, 1, 500 + 8_000 - 6_000 - 36)


@given(usages, st.sampled_from([Remaining(), Remaining(50), CumulusSixths(), Floor(700), Floor(50_000)]))
def test_no_policy_gives_out_more_than_there_is(usage: PovUsage, policy: BudgetPolicy) -> None:
    shares = policy.share_out(usage)
    taken = sum(map(len, usage.downward_messages[: shares.downward_count]))
    taken += sum(map(len, usage.horizontal_messages[: shares.horizontal_count]))
    assert shares.pubsub_bytes >= 0
    assert taken + shares.pubsub_bytes <= usage.max_pov_bytes * 85 // 100 + shares.over_bytes
    if shares.over_bytes and all(len(it) > 40 for it in (*usage.downward_messages, *usage.horizontal_messages)):
        assert max(shares.downward_count, shares.horizontal_count) <= 1, "only what must be in a block exceeds its room"


@given(usages, st.sampled_from([Remaining(), Remaining(50), CumulusSixths(), Floor(700), Floor(50_000)]))
def test_a_chain_gives_pubsub_what_the_collator_did(usage: PovUsage, policy: BudgetPolicy) -> None:
    """The collator shares out all that waits; the chain sees messages in full, and hashes of the others."""
    shares = policy.share_out(usage)
    downward, horizontal = usage.downward_messages, usage.horizontal_messages
    hashed = 36 * (len(downward) - shares.downward_count) + 40 * (len(horizontal) - shares.horizontal_count)
    in_full = downward[: shares.downward_count], horizontal[: shares.horizontal_count]
    assert policy.share_out(PovUsage(usage.max_pov_bytes, *in_full, usage.other_bytes, hashed)) == shares
    assert bool(shares.downward_count) == bool(downward)
    assert bool(shares.horizontal_count) == bool(horizontal)


@given(usages, st.sampled_from([Remaining(), Remaining(50), CumulusSixths(), Floor(700), Floor(50_000)]))
def test_an_honest_collator_never_holds_messages_back(usage: PovUsage, policy: BudgetPolicy) -> None:
    """Whatever the channel of the first hashed message allows, for the message itself is no longer than that."""
    shares = policy.share_out(usage)
    full, hashed = (
        usage.horizontal_messages[: shares.horizontal_count],
        usage.horizontal_messages[shares.horizontal_count :],
    )
    if not hashed:
        return
    downward = usage.downward_messages
    hashed_bytes = 36 * (len(downward) - shares.downward_count) + 40 * len(hashed)
    given_to_chain = PovUsage(
        usage.max_pov_bytes, downward[: shares.downward_count], full, usage.other_bytes, hashed_bytes
    )
    room = policy.share_out(given_to_chain).horizontal_room
    assert Advanced().allows(full_bytes=sum(map(len, full)), largest_next=len(hashed[0]), room=room)


def test_the_collator_and_the_chain_share_out_alike() -> None:
    for budget in (Remaining(), CumulusSixths(), Floor(4_000)):
        world = World(budget=budget)
        world.subscribe(ALPHA, keys(40))
        world.publish(ALPHA, keys(40), bytes(100))
        block = world.block(pubsub_bytes=9_000)
        assert block.pruning.cursor == block.result.cursor
        assert block.outcome.meter.limit.proof_size == budget.share_out(block.inherent.usage()).pubsub_bytes < PLENTY
