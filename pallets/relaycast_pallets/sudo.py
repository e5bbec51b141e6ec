"""The sudo pallet: one account, the key, makes calls as governance or as anybody (pallet-sudo).

The inner call succeeds or is taken back by itself; the outer one succeeds either way, costs nothing and tells how the
inner one ended.
"""

from typing import Annotated, ClassVar, Protocol

from relaycast_pallets.frame.dispatch import (
    DispatchError,
    NestedResult,
    Origin,
    Pays,
    PostDispatchInfo,
    ensure_signed,
)
from relaycast_pallets.frame.system import Event, System
from relaycast_pallets.frame.typed_storage import ACCOUNT_ID, StorageValue
from relaycast_pallets.frame.weights import CallWeight, Term, WeightTable
from relaycast_xcm.primitives import ROCKS_DB, AccountId, Lookup, Rust, Weight

_UPSTREAM = "pallet-sudo's weights.rs of April 2024"
WEIGHTS = WeightTable.of(
    CallWeight("sudo", Term(Weight(10_729_000, 1_517), 1), {}, _UPSTREAM),
    CallWeight("sudo_unchecked_weight", Term(), {}, "the caller says what the call weighs"),
    CallWeight("set_key", Term(Weight(9_663_000, 1_517), 1, 1), {}, _UPSTREAM),
    CallWeight("sudo_as", Term(Weight(11_003_000, 1_517), 1), {}, _UPSTREAM),
    CallWeight("remove_key", Term(Weight(9_127_000, 1_517), 1, 1), {}, _UPSTREAM),
)
"""What calls weigh by themselves; an inner call's weight is added."""


class Dispatchable(Protocol):
    """A decoded call."""

    def dispatch(self, origin: Origin, /) -> Weight | PostDispatchInfo:
        """Make the call; raises ``DispatchError``."""
        ...


RuntimeCall = Annotated[Dispatchable, Rust("RuntimeCall")]


class RequireSudo(DispatchError, message="the origin is {origin}, expected the sudo key"):
    """``origin`` is not the key."""

    origin: Origin


class SudoEvent(Event, frozen=True):
    """An event of this pallet."""

    pallet: ClassVar[str] = "Sudo"


class Sudid(SudoEvent, frozen=True):
    """The key made a call as governance."""

    sudo_result: NestedResult


class KeyChanged(SudoEvent, frozen=True):
    """The key is ``new``, and was ``old``."""

    old: AccountId | None
    new: AccountId


class KeyRemoved(SudoEvent, frozen=True):
    """The sudo key was removed."""


class SudoAsDone(SudoEvent, frozen=True):
    """The key made a call as another account."""

    sudo_result: NestedResult


class Sudo:
    """The pallet; without a key it refuses every call with ``RequireSudo``."""

    PALLET = "Sudo"

    def __init__(self, system: System) -> None:
        self.system = system
        self.key = StorageValue(system.state, self.PALLET, "Key", ACCOUNT_ID)

    def weight(self, call: str) -> Weight:
        """Return what ``call`` weighs, without the call inside it."""
        return WEIGHTS[call].at(ROCKS_DB)

    def sudo(self, origin: Origin, call: RuntimeCall) -> PostDispatchInfo:
        """Make ``call`` as governance. Raises ``RequireSudo``."""
        self._require_key(origin)
        error, used = self._dispatch(call, Origin.root())
        self.system.deposit_event(Sudid(error))
        return PostDispatchInfo(self.weight("sudo") + used, Pays.No)

    def sudo_unchecked_weight(self, origin: Origin, call: RuntimeCall, weight: Weight) -> PostDispatchInfo:
        """Make ``call`` as governance and count ``weight``, whatever it weighs. Raises ``RequireSudo``."""
        self._require_key(origin)
        error, _ = self._dispatch(call, Origin.root())
        self.system.deposit_event(Sudid(error))
        return PostDispatchInfo(weight, Pays.No)

    def set_key(self, origin: Origin, new: Lookup) -> PostDispatchInfo:
        """Hand the key over to ``new``. Raises ``RequireSudo``."""
        self._require_key(origin)

        old = self.key.get()
        self.key.put(new)
        self.system.deposit_event(KeyChanged(old, new))
        return PostDispatchInfo(self.weight("set_key"), Pays.No)

    def sudo_as(self, origin: Origin, who: Lookup, call: RuntimeCall) -> PostDispatchInfo:
        """Make ``call`` as if ``who`` had signed it. Raises ``RequireSudo``."""
        self._require_key(origin)
        error, used = self._dispatch(call, Origin.signed(who))
        self.system.deposit_event(SudoAsDone(error))
        return PostDispatchInfo(self.weight("sudo_as") + used, Pays.No)

    def remove_key(self, origin: Origin) -> PostDispatchInfo:
        """Give up the key for ever. Raises ``RequireSudo``."""
        self._require_key(origin)

        self.key.kill()
        self.system.deposit_event(KeyRemoved())
        return PostDispatchInfo(self.weight("remove_key"), Pays.No)

    def _require_key(self, origin: Origin) -> None:
        if ensure_signed(origin) != self.key.get():
            raise RequireSudo(origin)

    def _dispatch(self, call: Dispatchable, origin: Origin) -> tuple[DispatchError | None, Weight]:
        """Make the inner call; a refused one leaves nothing but its error, and weighs nothing."""
        try:
            with self.system.state.transaction():
                return None, PostDispatchInfo.of(call.dispatch(origin)).weight
        except DispatchError as error:
            return error.as_value(), Weight.ZERO

    def __repr__(self) -> str:
        key = self.key.get()
        return f"<Sudo {'without a key' if key is None else f'of 0x{key.hex()}'}>"
