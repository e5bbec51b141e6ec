"""Checkpoints: a simulation put away and taken up again, and bytes that are none."""

import io
import os
import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest

from relaycast.batch import Batch
from relaycast_spark.checkpoint import closing_digest, freeze, thaw
from relaycast_spark.exceptions import CheckpointRefused
from spark.scenarios import MARKET, SCARCE


@pytest.fixture
def batch() -> Batch:
    batch = Batch.prepare(MARKET)
    for block in range(1, 6):
        batch.pass_over(block)
    return batch


def frozen(data: bytes) -> bytes:
    compressed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return len(data).to_bytes(8, "little") + compressed


def test_a_simulation_goes_on_from_its_checkpoint_as_if_nothing_had_been(batch: Batch) -> None:
    again = thaw(freeze(batch))
    for block in range(6, 12):
        assert again.advance(block) == batch.advance(block)
    assert closing_digest(again) == closing_digest(batch)


def test_constants_come_back_as_themselves(batch: Batch) -> None:
    again = thaw(freeze(batch))
    pallet, known = again.chains.relay_chain.system, batch.chains.relay_chain.system
    assert pallet._number.codec is known._number.codec


def test_the_digest_tells_states_apart(batch: Batch) -> None:
    before = closing_digest(batch)
    batch.pass_over(6)
    assert closing_digest(batch) != before
    other = Batch.prepare(SCARCE)
    assert closing_digest(other) != before


class Intruder:
    """Something that would run a command when it is loaded."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("exit 1",)


def test_nothing_foreign_is_loaded() -> None:
    with pytest.raises(CheckpointRefused, match=r"posix\.system"):
        thaw(frozen(pickle.dumps(Intruder())))


def test_no_constant_of_another_module_is_looked_up() -> None:
    class Naming(pickle.Pickler):
        def persistent_id(self, thing: object) -> object:
            return ("os", "environ") if thing == "me" else None

    stream = io.BytesIO()
    Naming(stream).dump(["me"])
    with pytest.raises(CheckpointRefused, match="a constant of os"):
        thaw(frozen(stream.getvalue()))


@pytest.mark.parametrize(
    "data",
    [
        b"",  # nothing at all
        b"\x05\0\0\0\0\0\0\0nonsense",  # not compressed
        frozen(b""),  # no pickle
        frozen(b"\x80\x05K\x01"),  # a pickle that ends too early
    ],
)
def test_bytes_that_are_no_checkpoint_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointRefused):
        thaw(data)
