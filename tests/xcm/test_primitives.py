"""Ids, weights and meters."""

import pickle

import pytest
from hypothesis import given

from relaycast_xcm import PARITY_DB, ROCKS_DB, ZERO_DB, ParaId, Weight, WeightMeter
from xcm.xcm_strategies import weights

U64_MAX = 2**64 - 1


@pytest.mark.parametrize(
    ("number", "encoded", "is_system"),
    [
        (1_000, "e8030000", True),
        (1_999, "cf070000", True),  # the last system parachain
        (2_000, "d0070000", False),  # the first public one
        (2**32 - 1, "ffffffff", False),
    ],
)
def test_a_para_id_encodes_plain_and_knows_whether_it_is_a_system_one(
    number: int, encoded: str, is_system: bool
) -> None:
    para = ParaId(number)
    assert para.encode().hex() == encoded
    assert para.is_system is is_system
    assert para == number
    assert pickle.loads(pickle.dumps(para)) == para
    assert str(para) == str(number)


@pytest.mark.parametrize("number", [-1, 2**32])
def test_a_para_id_outside_of_u32_is_a_slip(number: int) -> None:
    with pytest.raises(ValueError, match="u32"):
        ParaId(number)


@given(weights, weights)
def test_weights_saturate_in_both_dimensions(left: Weight, right: Weight) -> None:
    total = left + right
    assert total.ref_time == min(left.ref_time + right.ref_time, U64_MAX)
    assert total.proof_size == min(left.proof_size + right.proof_size, U64_MAX)
    assert (left - right).ref_time == max(left.ref_time - right.ref_time, 0)
    assert left.all_lte(left.max(right))
    assert left.min(right).all_lte(right)
    assert left.all_lte(right) == (not left.any_gt(right))
    assert (left.checked_sub(right) is None) == right.any_gt(left)


def test_a_weight_is_two_u64() -> None:
    with pytest.raises(ValueError, match="u64"):
        Weight(-1)
    assert Weight(3, 4) * 2 == 2 * Weight(3, 4) == Weight(6, 8)
    assert Weight.MAX * 2 == Weight.MAX


def test_a_meter_may_be_used_up_exactly_and_not_beyond() -> None:
    meter = WeightMeter(Weight(10, 100))
    assert meter.try_consume(Weight(10, 99))
    assert not meter.can_consume(Weight(0, 2))
    assert meter.try_consume(Weight(0, 1))
    assert not meter.try_consume(Weight(1, 0))
    assert meter.consumed == meter.limit == Weight(10, 100)
    assert meter.remaining() == Weight.ZERO


def test_a_meter_that_is_full_refuses_in_one_dimension_alone() -> None:
    meter = WeightMeter(Weight(10, 100))
    assert not meter.can_consume(Weight(11, 0))
    assert not meter.can_consume(Weight(0, 101))
    assert meter.consumed == Weight.ZERO


def test_work_that_is_done_is_charged_beyond_the_limit() -> None:
    meter = WeightMeter(Weight(1, 1))
    meter.consume(Weight(5, 5))
    assert meter.consumed == Weight(5, 5)
    assert meter.remaining() == Weight.ZERO
    assert not meter.can_consume(Weight.ZERO)


def test_database_weights_are_those_of_frame_support() -> None:
    assert ROCKS_DB.reads_writes(2, 3) == Weight(2 * 25_000_000 + 3 * 100_000_000)
    assert PARITY_DB.reads(1) == Weight(8_000_000)
    assert PARITY_DB.writes(1) == Weight(50_000_000)
    assert ZERO_DB.reads_writes(9, 9) == Weight.ZERO
