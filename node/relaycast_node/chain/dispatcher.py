"""Decoded calls made: weighed before they run, their arguments looked up, then handed to the pallet that they name."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.metadata.declarations import DeclaredCall, DeclaredPallet
from relaycast_node.metadata.python_types import rust_type_of
from relaycast_node.metadata.runtime import Runtime
from relaycast_node.metadata.rust_syntax import Named, RustType, TupleOf
from relaycast_pallets.frame.dispatch import DispatchClass, DispatchError, DispatchInfo, Origin, PostDispatchInfo
from relaycast_pallets.frame.weights import WeightTable
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight

UNWEIGHED = Weight(100_000_000, 3_593)
"""What a call declares that no table weighs: about a transfer's."""

MANDATORY = frozenset({"Timestamp", "ParaInherent", "ParachainSystem"})
"""Pallets whose calls are inherents."""


class CannotLookup(DispatchError, message="an address is an account id, got one of the kind {kind}"):
    """An address of a ``kind`` that names no account here: only ``Id`` does."""

    variant = "CannotLookup"

    kind: str


class CannotBeMeant(DispatchError, message="{reason}"):
    """Arguments that fit their types and make no sense together, for this ``reason``."""

    variant = "Other"

    reason: str


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that can be made; ``arguments`` are those of the pallet's method."""

    target: object
    name: str
    arguments: Mapping[str, Any]

    def dispatch(self, origin: Origin, /) -> Weight | PostDispatchInfo:
        """Make the call; raises ``DispatchError``."""
        returned = getattr(self.target, self.name)(origin, **self.arguments)
        return UNWEIGHED if returned is None else returned


class Dispatcher:
    """Makes the calls of a ``runtime``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pallets = {it.name: it for it in runtime.pallets}
        self._calls = {(it.name, call.name): (it, call) for it in runtime.pallets for call in it.calls}

    def info(self, call: DecodedCall) -> DispatchInfo:
        """Return what a call declares before it runs."""
        pallet, _ = self._calls[call.pallet, call.name]
        kind = DispatchClass.Mandatory if call.pallet in MANDATORY else DispatchClass.Normal
        weight = self._weight(pallet, call.name, call.args)
        for inner in self._inner_calls(call.args):
            weight += self.info(inner).weight
        return DispatchInfo(weight, kind)

    def dispatch(self, call: DecodedCall, origin: Origin) -> PostDispatchInfo:
        """Make a call; raises ``DispatchError``."""
        prepared = self._prepared(call.pallet, call.name, call.args)
        try:
            return PostDispatchInfo.of(prepared.dispatch(origin))
        except ValueError as error:
            raise CannotBeMeant(str(error)) from error

    def _prepared(self, pallet_name: str, name: str, args: Mapping[str, Any]) -> PreparedCall:
        pallet, declared = self._calls[pallet_name, name]
        types = _types_of(declared)
        return PreparedCall(pallet.target, name, {it: self._given(types[it], value) for it, value in args.items()})

    def _given(self, rust_type: RustType, value: Any) -> Any:  # noqa: PLR0911 - one for each kind
        """Return an argument as the pallet takes it: accounts for addresses, calls that can be made, ids as such."""
        if isinstance(rust_type, TupleOf):
            return tuple(self._given(it, part) for it, part in zip(rust_type.elements, value, strict=True))
        if not isinstance(rust_type, Named) or value is None:
            return value
        match rust_type.name:
            case "MultiAddress":
                return _account_of(value)
            case "RuntimeCall":
                pallet, (name, args) = value
                return self._prepared(pallet, name, args or {})
            case "ParaId":
                return ParaId(value)
            case "SubscribedKey":
                return SubscribedKey(value)
            case "Weight":
                return Weight(value["ref_time"], value["proof_size"])
            case "Option":
                return self._given(rust_type.arguments[0], value)
            case "Vec" if not isinstance(value, bytes):
                return [self._given(rust_type.arguments[0], it) for it in value]
        return value

    def _inner_calls(self, args: Mapping[str, Any]) -> list[DecodedCall]:
        """Return the calls among the arguments of a call."""
        return [
            DecodedCall(value[0], value[1][0], value[1][1] or {}, b"")
            for name, value in args.items()
            if name == "call" and isinstance(value, tuple)
        ]

    def _weight(self, pallet: DeclaredPallet, name: str, args: Mapping[str, Any]) -> Weight:
        table = _weights_of(pallet)
        if table is None or name not in table:
            return UNWEIGHED
        sizes = {"k": _most_keys(pallet), "n": len(args.get("keys", ())), "b": len(args.get("remark", b""))}
        weight = table[name]
        return weight.at(_db_weight(pallet), **{it: sizes[it] for it in weight.slopes})


@cache
def _declared_types(arguments: tuple[tuple[str, object], ...]) -> Mapping[str, RustType]:
    return {name: rust_type_of(annotation, lambda _: None) for name, annotation in arguments}


def _types_of(declared: DeclaredCall) -> Mapping[str, RustType]:
    return _declared_types(tuple(declared.arguments.items()))


def _account_of(address: tuple[str, Any]) -> bytes:
    kind, account = address
    if kind != "Id":
        raise CannotLookup(kind)
    found: bytes = account
    return found


def _weights_of(pallet: DeclaredPallet) -> WeightTable | None:
    config = getattr(pallet.target, "config", None)
    module = sys.modules[type(pallet.target).__module__]
    found = getattr(config, "weights", None) or getattr(module, "WEIGHTS", None)
    return found if isinstance(found, WeightTable) else None


def _db_weight(pallet: DeclaredPallet) -> Any:
    return getattr(getattr(pallet.target, "config", None), "db_weight", ROCKS_DB)


def _most_keys(pallet: DeclaredPallet) -> int:
    return int(getattr(getattr(pallet.target, "config", None), "max_stored_keys", 0))
