"""The key calls as governance; what it calls succeeds or is taken back by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest

from pallets.relay import ALICE, BOB, CAROL
from relaycast_pallets import BadOrigin, DispatchError, Event, Origin, State, System
from relaycast_pallets.frame.dispatch import Pays, PostDispatchInfo
from relaycast_pallets.sudo import KeyChanged, KeyRemoved, RequireSudo, Sudid, Sudo, SudoAsDone
from relaycast_xcm.primitives import Weight

KEY = Origin.signed(ALICE)


class Refused(DispatchError):
    """A call that its pallet refuses."""


class Called(Event, frozen=True):
    pallet: ClassVar[str] = "Test"
    origin: Origin


@dataclass(frozen=True, slots=True)
class Write:
    """A call that writes, tells of its origin, and is refused in the end if it is to be."""

    system: System
    refused: bool = False

    def dispatch(self, origin: Origin, /) -> Weight:
        self.system.state.put(b"written", b"yes")
        self.system.deposit_event(Called(origin))
        if self.refused:
            raise Refused
        return Weight(1_000)


@pytest.fixture
def sudo() -> Sudo:
    sudo = Sudo(System(State()))
    sudo.key.put(ALICE)
    return sudo


def test_the_key_calls_as_governance_and_pays_nothing(sudo: Sudo) -> None:
    used = sudo.sudo(KEY, Write(sudo.system))
    assert used == PostDispatchInfo(sudo.weight("sudo") + Weight(1_000), Pays.No)
    assert list(sudo.system.events) == [Called(Origin.root()), Sudid(None)]
    assert sudo.system.state.get(b"written") == b"yes"


def test_a_refused_inner_call_leaves_its_error_alone(sudo: Sudo) -> None:
    before = sudo.system.state.snapshot()
    sudo.sudo(KEY, Write(sudo.system, refused=True))
    (told,) = sudo.system.events
    assert isinstance(told, Sudid)
    assert isinstance(told.sudo_result, Refused)
    assert sudo.system.state.snapshot() == before


def test_the_weight_of_a_call_may_be_given(sudo: Sudo) -> None:
    used = sudo.sudo_unchecked_weight(KEY, Write(sudo.system), Weight(7, 8))
    assert used == PostDispatchInfo(Weight(7, 8), Pays.No)
    assert list(sudo.system.events) == [Called(Origin.root()), Sudid(None)]


def test_the_key_calls_as_somebody_else(sudo: Sudo) -> None:
    used = sudo.sudo_as(KEY, BOB, Write(sudo.system))
    assert used == PostDispatchInfo(sudo.weight("sudo_as") + Weight(1_000), Pays.No)
    assert list(sudo.system.events) == [Called(Origin.signed(BOB)), SudoAsDone(None)]


def test_the_key_is_handed_over_and_given_up(sudo: Sudo) -> None:
    assert sudo.set_key(KEY, BOB).pays_fee is Pays.No
    with pytest.raises(RequireSudo, match="expected the sudo key"):
        sudo.remove_key(KEY)
    assert sudo.remove_key(Origin.signed(BOB)).pays_fee is Pays.No
    assert list(sudo.system.events) == [KeyChanged(ALICE, BOB), KeyRemoved()]
    assert sudo.key.get() is None


@pytest.mark.parametrize(
    ("origin", "error"),
    [
        (Origin.signed(CAROL), RequireSudo),
        (Origin.root(), BadOrigin),  # governance needs no key, and has none
        (Origin.none(), BadOrigin),
    ],
)
def test_nobody_else_calls(sudo: Sudo, origin: Origin, error: type[DispatchError]) -> None:
    call, before = Write(sudo.system), sudo.system.state.snapshot()
    attempts: list[Callable[[], object]] = [
        lambda: sudo.sudo(origin, call),
        lambda: sudo.sudo_unchecked_weight(origin, call, Weight(1)),
        lambda: sudo.sudo_as(origin, BOB, call),
        lambda: sudo.set_key(origin, CAROL),
        lambda: sudo.remove_key(origin),
    ]
    for attempt in attempts:
        with pytest.raises(error):
            attempt()
    assert sudo.system.state.snapshot() == before
    assert len(sudo.system.events) == 0


def test_without_a_key_nobody_calls() -> None:
    sudo = Sudo(System(State()))
    with pytest.raises(RequireSudo):
        sudo.sudo(KEY, Write(sudo.system))
