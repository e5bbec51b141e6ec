"""Records as bytes: the same values of the same types come back, and nothing else does."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec import Struct

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger import BlockRecord
from relaycast_ledger.segments.record_codec import decode_records, encode_records
from relaycast_xcm.checkpoint import CheckpointRefused
from spark.scenarios import MARKET, SCARCE


def records_of(scenario: Scenario, *, per_key: bool = False) -> list[list[BlockRecord]]:
    batch = BatchSimulation.prepare(scenario, per_key=per_key)
    return [batch.advance(block).records for block in range(1, scenario.blocks + 1)]


def with_types(value: Any) -> Any:
    """Return a value as plain tuples that name every type in it: a number that is a parachain equals its number."""
    if isinstance(value, Struct):
        return type(value), [(name, with_types(getattr(value, name))) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return dict, [(with_types(key), with_types(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [with_types(each) for each in value]
    return type(value), value


@pytest.mark.parametrize("scenario", [MARKET, SCARCE], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("per_key", [False, True])
def test_records_come_back_with_their_types(scenario: Scenario, per_key: bool) -> None:
    told = records_of(scenario, per_key=per_key)
    assert with_types([decode_records(encode_records(records)) for records in told]) == with_types(told)
    whole = [record for records in told for record in records]
    assert any(record.picture for record in whole)
    assert any(record.account and record.account.keys for record in whole) == per_key
    if scenario is SCARCE:
        assert any(record.cursor for record in whole)


def test_equal_records_give_equal_bytes_whichever_parts_are_one_object() -> None:
    told = records_of(SCARCE)[5]
    assert encode_records(deepcopy(told)) == encode_records(told)
    assert encode_records(decode_records(encode_records(told))) == encode_records(told)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b"\xc1", "invalid"),  # no MessagePack
        (b"\x01", "Expected `array`"),  # a number where records belong
        (b"\x91\x80", "missing required field"),  # a record without anything
    ],
)
def test_what_is_no_record_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(CheckpointRefused, match=why):
        decode_records(data)


def test_a_parachain_that_is_none_is_refused() -> None:
    (record, *_) = records_of(SCARCE)[5]
    forged = encode_records([record]).replace(b"\xa7para_id\xcd\x0b\xb8", b"\xa7para_id\xff")
    with pytest.raises(CheckpointRefused, match="u32"):
        decode_records(forged)
