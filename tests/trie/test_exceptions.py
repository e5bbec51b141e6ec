"""Refusals: each keeps its fields, says what it means, and survives a pickle."""

import copy
import inspect
import pickle

import pytest

from relaycast_trie import exceptions
from relaycast_trie.exceptions import (
    CodecError,
    DetailedProofError,
    DuplicateNode,
    InvalidNode,
    MissingNode,
    ProofError,
    RelaycastError,
    RootMismatch,
    TooManyBytes,
    TooManyNodes,
    UnusedNodes,
)

HASH = bytes(range(32))
SHOWN = "0x" + HASH.hex()

REFUSALS: list[tuple[RelaycastError, str]] = [
    (CodecError("a bool is 0 or 1, got 2", 7), "a bool is 0 or 1, got 2 at byte 7"),
    (InvalidNode(HASH, "a length is cut off", 3), f"{SHOWN} does not decode: a length is cut off at byte 3"),
    (RootMismatch(HASH), f"no node of the proof hashes to the root {SHOWN}"),
    (RootMismatch(HASH, bytes(32)), f"expected {SHOWN}"),
    (MissingNode(HASH, b"\x01\x0f"), f"{SHOWN} is missing at nibble path '1f'"),
    (UnusedNodes((HASH,)), f"unused node {SHOWN}"),
    (UnusedNodes((HASH, bytes(32))), f"unused node {SHOWN} and 1 more"),
    (DuplicateNode(HASH), f"{SHOWN} comes more than once"),
    (TooManyNodes(9), "meets more than 9 nodes"),
    (TooManyBytes(9), "more than 9 bytes"),
]


def detailed() -> list[type[DetailedProofError]]:
    found = [
        kind for _, kind in inspect.getmembers(exceptions, inspect.isclass) if issubclass(kind, DetailedProofError)
    ]
    return [kind for kind in found if kind is not DetailedProofError]


@pytest.mark.parametrize(("refusal", "message"), REFUSALS, ids=lambda value: type(value).__name__)
def test_a_refusal_says_what_is_wrong_and_where(refusal: RelaycastError, message: str) -> None:
    assert message in str(refusal)
    assert "\n" not in str(refusal)


@pytest.mark.parametrize("refusal", [refusal for refusal, _ in REFUSALS], ids=lambda value: type(value).__name__)
def test_a_refusal_survives_a_pickle_and_a_copy(refusal: RelaycastError) -> None:
    for twin in (pickle.loads(pickle.dumps(refusal)), copy.copy(refusal)):
        assert type(twin) is type(refusal)
        assert (twin.args, str(twin), vars(twin)) == (refusal.args, str(refusal), vars(refusal))


@pytest.mark.parametrize("kind", detailed())
def test_a_refusal_with_a_detail_survives_too(kind: type[DetailedProofError]) -> None:
    refusal = kind(b"\x12\x34")
    twin = pickle.loads(pickle.dumps(refusal))
    assert (type(twin), twin.detail, str(twin)) == (kind, b"\x12\x34", str(refusal))
    assert str(refusal).endswith(": 0x1234")
    assert str(kind()) == str(refusal).removesuffix(": 0x1234")


def test_every_refusal_is_one_of_ours_and_each_class_is_pickled_here() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(exceptions, inspect.isclass)
        if kind.__module__ == exceptions.__name__ and issubclass(kind, Exception)
    }
    assert all(issubclass(kind, RelaycastError) for kind in kinds)
    bases = {base for kind in kinds for base in kind.__bases__}
    assert kinds - bases == {type(refusal) for refusal, _ in REFUSALS if type(refusal) not in bases} | (
        set(detailed()) - bases
    )


def test_an_invalid_node_is_caught_as_bad_bytes_and_as_a_bad_proof() -> None:
    assert issubclass(InvalidNode, CodecError)
    assert issubclass(InvalidNode, ProofError)
    assert not issubclass(CodecError, ProofError)


class TooMany(RelaycastError, message="{count} of {name}, at most {limit:,} in {place}"):
    """More than a limit allows."""

    name: str
    count: int
    limit: int = 1_000
    place: bytes = b"\x01"


class FarTooMany(TooMany):
    """Much more."""

    why: str = ""


def test_a_declared_refusal_has_fields_defaults_a_message_and_equality() -> None:
    refusal = TooMany("keys", count=1_001)
    assert (refusal.name, refusal.count, refusal.limit, refusal.place) == ("keys", 1_001, 1_000, b"\x01")
    assert refusal.args == ("keys", 1_001, 1_000, b"\x01")
    assert str(refusal) == "1001 of keys, at most 1,000 in 0x01"
    assert refusal == TooMany("keys", 1_001)
    assert refusal != TooMany("keys", 1_002)
    assert refusal != FarTooMany("keys", 1_001)
    assert str(FarTooMany("keys", 5, why="no reason")) == "5 of keys, at most 1,000 in 0x01"
    assert FarTooMany("keys", 5, 6, b"", "no reason").why == "no reason"
    assert pickle.loads(pickle.dumps(refusal)) == refusal


@pytest.mark.parametrize(
    ("values", "named"), [(("keys",), {}), (("keys", 1, 2, b"", 3), {}), (("keys", 1), {"name": "x"}), ((), {"no": 1})]
)
def test_a_refusal_with_other_fields_is_the_callers_slip(values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="TooMany"):
        TooMany(*values, **named)  # type: ignore[arg-type]


def test_a_refusal_without_fields_takes_values_as_an_exception_does() -> None:
    class Unexpected(RelaycastError):
        """Something else."""

    assert str(Unexpected("more words")) == "more words"
    assert str(Unexpected()) == "Something else"
