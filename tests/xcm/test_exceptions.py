"""Refusals: they travel between processes, say what they are about, and are equal when they mean the same."""

import pickle

import pytest

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import (
    BoundExceeded,
    CapacityExceeded,
    Corrupt,
    MessageTooLarge,
    MoreMessagesThanPermitted,
    NoBarrierAllows,
    Overweight,
    ParaId,
    ProcessMessageError,
    TooDeep,
    TooManyInstructions,
    TotalSizeExceeded,
    UnknownVariant,
    Unsupported,
    UnsupportedVariant,
    UnsupportedVersion,
    Weight,
)

PARA = ParaId(2_000)


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (UnsupportedVersion(4, 1), "version 4 is not supported, only 5 at byte 1"),
        (UnknownVariant("Junction", 10, 2), "Junction has no variant 10 at byte 2"),
        (UnsupportedVariant("Response", "PalletsInfo", 4, 3), "Response PalletsInfo (4) is not supported at byte 3"),
        (TooManyInstructions(101, 100, 1), "101 instructions, at most 100 are decoded at byte 1"),
        (TooDeep(8, 17), "nested deeper than 8 levels at byte 17"),
        (BoundExceeded("Assets", 21, 20, 3), "Assets of 21, at most 20 allowed at byte 3"),
        (Corrupt(), "The bytes do not decode"),
        (Overweight(Weight(1_000, 2)), "the message needs (1,000 ps, 2 B)"),
        (NoBarrierAllows((("A", Corrupt()),)), "no barrier allows it: A says Corrupt"),
        (
            MoreMessagesThanPermitted(PARA, 17, 16),
            "parachain 2000 sends 17 upward messages in one block, 16 are permitted",
        ),
        (MessageTooLarge(PARA, 3, 101, 100), "upward message 3 of parachain 2000 has 101 bytes, limit 100"),
        (CapacityExceeded(PARA, 5, 4), "the upward queue of parachain 2000 would hold 5 messages, limit 4"),
        (TotalSizeExceeded(PARA, 5, 4), "the upward queue of parachain 2000 would hold 5 bytes, limit 4"),
    ],
)
def test_a_refusal_says_what_it_is_about_and_travels(refusal: RelaycastError, message: str) -> None:
    assert str(refusal) == message
    copy = pickle.loads(pickle.dumps(refusal))
    assert type(copy) is type(refusal)
    assert str(copy) == message
    assert vars(copy) == vars(refusal)


def test_process_message_errors_are_equal_by_class_and_fields() -> None:
    assert Corrupt() == Corrupt() != Unsupported()
    assert Overweight(Weight(1)) == Overweight(Weight(1)) != Overweight(Weight(2))
    assert len({Corrupt(), Corrupt(), Unsupported()}) == 2
    assert NoBarrierAllows(()) != Unsupported()
    names: list[ProcessMessageError] = [NoBarrierAllows(()), Overweight(Weight(1))]
    assert [error.name for error in names] == ["Unsupported", "Overweight"]
