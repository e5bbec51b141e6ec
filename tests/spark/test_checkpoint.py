"""Checkpoints: a simulation put away and taken up again, and bytes that are none."""

import io
import os
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from relaycast.simulation.batch import BatchSimulation
from relaycast_pallets.frame.system import ensure_root
from relaycast_spark.checkpoint import closing_digest, freeze, thaw
from relaycast_spark.exceptions import CheckpointRefused
from relaycast_trie import StateVersion
from relaycast_xcm import V5
from spark.scenarios import MARKET, SCARCE


@pytest.fixture
def batch() -> BatchSimulation:
    batch = BatchSimulation.prepare(MARKET)
    for block in range(1, 6):
        batch.pass_over(block)
    return batch


def frozen(data: bytes) -> bytes:
    compressed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return len(data).to_bytes(8, "little") + compressed


def test_a_simulation_goes_on_from_its_checkpoint_as_if_nothing_had_been(batch: BatchSimulation) -> None:
    again = thaw(freeze(batch))
    again.listen()
    for block in range(6, 12):
        assert again.advance(block) == batch.advance(block)
    assert closing_digest(again) == closing_digest(batch)


def test_constants_come_back_as_themselves(batch: BatchSimulation) -> None:
    again = thaw(freeze(batch))
    pallet, known = again.chains.relay_chain.system, batch.chains.relay_chain.system
    assert pallet._number.codec is known._number.codec


def test_the_digest_tells_states_apart(batch: BatchSimulation) -> None:
    before = closing_digest(batch)
    batch.pass_over(6)
    assert closing_digest(batch) != before
    other = BatchSimulation.prepare(SCARCE)
    assert closing_digest(other) != before


class Intruder:
    """Something that would run a command when it is loaded."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("exit 1",)


def test_nothing_foreign_is_loaded() -> None:
    with pytest.raises(CheckpointRefused, match=r"posix\.system"):
        thaw(frozen(pickle.dumps(Intruder())))


def by_name(module: str, name: str) -> bytes:
    """Return the opcodes that look ``name`` up in ``module``."""
    return b"".join(b"\x8c" + bytes([len(word)]) + word.encode() for word in (module, name)) + b"\x93"


def called(function: bytes, *arguments: bytes) -> bytes:
    """Return a pickle that calls what ``function`` leaves behind."""
    return b"\x80\x04" + function + b"(" + b"".join(arguments) + b"tR."


HERE = "relaycast_spark.checkpoint"
OPEN = b"\x8c\x04open"
BATCH = by_name("relaycast.simulation.batch", "BatchSimulation")


@pytest.mark.parametrize(
    "data",
    [
        called(by_name(HERE, "io.open"), OPEN),  # what a module of ours imports, by a name with a dot
        called(by_name(HERE, "sys"), OPEN),  # and by a name without
        called(by_name(HERE, "freeze.__globals__.clear")),  # what a function of ours leads to
        called(by_name(HERE, "closing_digest"), OPEN),  # a function of a room that reads and writes files
        called(by_name("relaycast_ledger.run_tables", "RunTables"), OPEN),  # a class of ours that opens files
        called(by_name("relaycast_spark.work_folder", "WorkFolder"), OPEN),
        called(
            by_name("relaycast_trie.array.kept_code", "KeptCode")
        ),  # of a room of values, but not of a module of them
        called(by_name("relaycast_trie.engine", "warm_up_for"), OPEN),  # a function that compiles for half a minute
        called(by_name("builtins", "getattr"), BATCH, b"\x8c\x07prepare"),  # a method of ours that reads a genesis
        called(by_name("builtins", "getattr"), by_name("collections", "deque"), OPEN),  # anything of something plain
        called(by_name("builtins", "getattr"), BATCH, b"\x8c\x0e__subclasses__"),  # something plain of ours
        called(by_name("relaycast_xcm.compound", "Struct")),  # a class that reads attributes by any name
        b"\x80\x04(\x8c\x1arelaycast_spark.checkpoint\x8c\x03systQ.",  # a module as if it were a constant
    ],
)
def test_our_own_modules_are_no_way_to_anything_else(data: bytes) -> None:
    with pytest.raises(CheckpointRefused):
        thaw(frozen(data))


STATE = b"(N}\x8c\x05extraK\x07st"
"""What sets an attribute on anything: no state for its ``__dict__``, and one for the others."""

ENSURE_ROOT = by_name("relaycast_pallets.frame.system", "ensure_root")
REBUILD = by_name("msgspec._utils", "rebuild")
GENESIS = b"}\x8c\x07genesis\x8c\x04opens"
"""A class of ours would read a file of this name."""

CONSTANT = b"(\x8c\x15relaycast_xcm.message\x8c\x02V5tQ"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            BATCH + STATE + b"b",
            "a change of <class 'relaycast.simulation.batch.BatchSimulation'>",
        ),  # would stay so for every later run
        (ENSURE_ROOT + STATE + b"b", "a change of <function ensure_root"),
        (CONSTANT + STATE + b"b", "a change of <relaycast_xcm.message.XcmCodec"),
        (CONSTANT + b"}b", "a change of <relaycast_xcm.message.XcmCodec"),
        (by_name("relaycast_trie.node_codec", "StateVersion") + b"K\x01\x85R" + STATE + b"b", "a change of <StateVer"),
        (CONSTANT + b"K\x01a", "a change of"),
        (CONSTANT + b"(K\x01K\x02e", "a change of"),
        (CONSTANT + b"K\x01K\x02s", "a change of"),
        (CONSTANT + b"(K\x01K\x02u", "a change of"),
        (CONSTANT + b"(K\x01\x90", "a change of"),
        (ENSURE_ROOT + b"K\x01\x85R", "a call of <function ensure_root"),  # held, and called by a pallet alone
        (by_name("functools", "partial") + BATCH + b"\x85R", "functools.partial"),
        (by_name("collections", "deque") + b")R)R", "a call of deque([])"),  # what was made, and is no class
        (REBUILD + by_name("relaycast.network", "Network") + GENESIS + b"\x86R", "Network, which is no struct"),
        (ENSURE_ROOT + b")\x81", "a call of"),
        (ENSURE_ROOT + b")}\x92", "a call of"),
        (b"(" + BATCH + b"o", "KeyError"),
        (b"(irelaycast.batch\nBatch\n", "KeyError"),
        (BATCH + b")R", "TypeError"),  # a class of ours that asks for more
        (b"K\x01" * 3 + b"R", "a call of 1"),
    ],
)
def test_a_checkpoint_calls_classes_alone_and_changes_nothing_that_was_there(data: bytes, reason: str) -> None:
    before = [dict(vars(it)) for it in (BatchSimulation, StateVersion, ensure_root, V5)]
    with pytest.raises(CheckpointRefused) as refused:
        thaw(frozen(b"\x80\x04" + data + b"."))
    assert refused.value.reason.startswith(reason)
    assert [dict(vars(it)) for it in (BatchSimulation, StateVersion, ensure_root, V5)] == before


@pytest.mark.parametrize("thing", [None, [], {"chains": 1}, b"chains"])
def test_what_is_no_simulation_is_refused(thing: Any) -> None:
    with pytest.raises(CheckpointRefused, match=f"{type(thing).__name__}, which is no simulation"):
        thaw(freeze(thing))


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
        b"\xff" * 8 + frozen(b"N.")[8:],  # more than any machine holds
        b"\xff" * 7 + b"\0" + frozen(b"N.")[8:],
        frozen(b""),  # no pickle
        frozen(b"\x80\x05K\x01"),  # a pickle that ends too early
    ],
)
def test_bytes_that_are_no_checkpoint_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointRefused):
        thaw(data)
