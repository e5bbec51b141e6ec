"""A chain's runtime as clients see it: its pallets under their indices, its types, and a codec for their values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.metadata.declarations import DeclaredPallet, StorageItem, ensure_key, storage_in
from relaycast_node.metadata.portable_types import Case, Field, PortableRegistry, PortableType, Variants
from relaycast_node.metadata.python_types import docs_of
from relaycast_node.metadata.rust_syntax import CaseSyntax, Declaration, FieldSyntax, Named, parse_declarations
from relaycast_node.metadata.type_builder import TypeBuilder
from relaycast_node.metadata.value_codec import ValueCodec, VariantOf
from relaycast_pallets.balances import HoldReason
from relaycast_pallets.frame.system import DispatchError
from relaycast_trie.exceptions import CodecError

CALL, EVENT, ERROR, HOLD_REASON = "RuntimeCall", "RuntimeEvent", "RuntimeError", "RuntimeHoldReason"
PARTS = {CALL: "Call", EVENT: "Event", ERROR: "Error"}
"""What each pallet's part of an outer enum is called."""

MODULE_ERROR_BYTES = 4
ITEM_BYTES = 32
"""The prefix of every key of a storage item."""

SHOWN_BYTES = 40


@dataclass(frozen=True, slots=True)
class RuntimeNames:
    """What a chain calls its runtime. The name is no other chain's, so that clients apply no overrides to it."""

    spec_name: str
    impl_name: str = "relaycast"
    authoring_version: int = 1
    spec_version: int = 1
    impl_version: int = 0
    transaction_version: int = 1
    system_version: int = 1


class Runtime:
    """The types of ``pallets``, whose storage items are those found in the ``holders``."""

    def __init__(self, names: RuntimeNames, pallets: Sequence[DeclaredPallet], holders: Iterable[object]) -> None:
        self.names = names
        self.pallets = sorted(pallets, key=lambda it: it.index)
        _share_out(self.pallets, holders)
        self.types = TypeBuilder(_declarations())
        variants: dict[type, VariantOf] = {DispatchError: self._error_variant, HoldReason: _reason_variant}
        self.types.spelled("AccountId32")  # number 0 on every chain; PAPI takes a call type of that number for none
        self.codec = ValueCodec(self.types.registry, variants)
        for cls in _classes_of_storage(self.pallets):
            self.types.add_class(cls)
        self._path = names.spec_name.replace("-", "_")
        self._errors = {
            error: (pallet.index, index) for pallet in self.pallets for index, error in enumerate(pallet.errors)
        }
        for outer, part in PARTS.items():
            self.types.define(outer, lambda outer=outer, part=part: self._outer(outer, part))  # type: ignore[misc]
        for pallet in self.pallets:
            self.types.define(f"{pallet.name}Call", lambda it=pallet: self._calls_of(it))  # type: ignore[misc]
            self.types.define(f"{pallet.name}Event", lambda it=pallet: self._events_of(it))  # type: ignore[misc]
            self.types.define(f"{pallet.name}Error", lambda it=pallet: _errors_of(it))  # type: ignore[misc]
        self.types.define(HOLD_REASON, self._hold_reasons)

    @property
    def registry(self) -> PortableRegistry:
        return self.types.registry

    def part(self, pallet: DeclaredPallet, outer: str) -> int | None:
        """Return the number of a pallet's part of an outer enum, ``None`` where it has none."""
        members = {CALL: pallet.calls, EVENT: pallet.events, ERROR: pallet.errors}[outer]
        return self.types.spelled(f"{pallet.name}{PARTS[outer]}") if members else None

    @cached_property
    def call_type(self) -> int:
        """The number of the type of all calls."""
        return self.types.spelled(CALL)

    def decode_call(self, data: bytes) -> DecodedCall:
        """Return the call that all of ``data`` encodes; raises ``CodecError``."""
        pallet, (name, args) = self.codec.decode(self.call_type, data)
        return DecodedCall(pallet, name, {} if args is None else args, data)

    def encode_call(self, pallet: str, name: str, **args: Any) -> bytes:
        """Return a call in SCALE; raises ``CodecError`` for one that the runtime does not have."""
        declared = next((it for it in self.pallets if it.name == pallet), None)
        if declared is None or name not in {it.name for it in declared.calls}:
            raise CodecError(f"the runtime has no call {pallet}.{name}")
        return self.codec.encode(self.call_type, (pallet, (name, args)))

    def encode(self, spelling: str, value: Any) -> bytes:
        """Return a value of the type that is spelled like this, in SCALE; raises ``CodecError``."""
        return self.codec.encode(self.types.spelled(spelling), value)

    def decode(self, spelling: str, data: bytes) -> Any:
        """Return the value of a type that all of ``data`` encodes; raises ``CodecError``."""
        return self.codec.decode(self.types.spelled(spelling), data)

    def check_value(self, key: bytes, value: bytes | None) -> None:
        """Raise ``ValueError`` if ``key`` has the prefix of a storage item that has no such key or no such value.

        ``None`` removes the key, which every item allows: pallets then read the default, or nothing.
        """
        item = self._items.get(key[:ITEM_BYTES])
        if item is None or value is None:
            return
        name = ".".join(item.name)
        try:
            ensure_key(item, key)
        except ValueError as error:
            raise ValueError(f"the key 0x{_short(key)} under {name}: {error}") from None
        try:
            item.codec.decode(value)
            self.decode(item.codec.name, value)
        except (CodecError, ValueError) as error:
            raise ValueError(f"{name}: got 0x{_short(value)}, expected a {item.codec.name}: {error}") from None

    @cached_property
    def _items(self) -> dict[bytes, StorageItem]:
        return {it.item.prefix: it.item for pallet in self.pallets for it in pallet.storage}

    def _error_variant(self, error: DispatchError) -> tuple[str, Any]:
        """Return the variant of ``DispatchError`` that a refusal is."""
        if error.variant != "Module":
            return error.variant, error.detail or None
        index, number = self._errors[type(error)]
        return "Module", {"index": index, "error": bytes([number]).ljust(MODULE_ERROR_BYTES, b"\x00")}

    def _outer(self, outer: str, part: str) -> PortableType:
        numbered = [(it, self.part(it, outer)) for it in self.pallets]
        cases = tuple(
            Case(it.name, it.index, (Field(None, number, f"{it.name}{part}"),))
            for it, number in numbered
            if number is not None
        )
        return PortableType(Variants(cases), (self._path, outer))

    def _calls_of(self, pallet: DeclaredPallet) -> PortableType:
        cases = []
        for index, call in enumerate(pallet.calls):
            fields = tuple(self.types.field(name, hint) for name, hint in call.arguments.items())
            cases.append(Case(call.name, index, fields, call.docs))
        return PortableType(Variants(tuple(cases)), _path_of(pallet, "Call"))

    def _events_of(self, pallet: DeclaredPallet) -> PortableType:
        cases = tuple(
            Case(event.__name__, index, self.types.fields_of(event), docs_of(event))
            for index, event in enumerate(pallet.events)
        )
        return PortableType(Variants(cases), _path_of(pallet, "Event"))

    def _hold_reasons(self) -> PortableType:
        cases = []
        for pallet in self.pallets:
            if pallet.hold_reasons:
                reasons = tuple(Case(it.name, it.index) for it in pallet.hold_reasons)
                path = _path_of(pallet, "HoldReason")
                number = self.registry.number(
                    "::".join(path),
                    lambda reasons=reasons, path=path: PortableType(Variants(reasons), path),  # type: ignore[misc]
                )
                cases.append(Case(pallet.name, pallet.hold_reasons[0].pallet_index, (Field(None, number),)))
        return PortableType(Variants(tuple(cases)), (self._path, HOLD_REASON))


@cache
def _declarations() -> tuple[Declaration, ...]:
    """Return the types of polkadot-sdk that are no classes here, read once for all chains."""
    text = resources.files("relaycast_node.metadata").joinpath("substrate_types.rs").read_text(encoding="utf-8")
    return (*parse_declarations(text), _era())


def _share_out(pallets: Sequence[DeclaredPallet], holders: Iterable[object]) -> None:
    """Give each pallet the storage items under its name; ``ValueError`` for items of a pallet that is not there."""
    by_name: Mapping[str, DeclaredPallet] = {it.name: it for it in pallets}
    for holder in holders:
        for storage in storage_in(holder):
            if storage.pallet not in by_name:
                raise ValueError(f"the storage item {'.'.join(storage.item.name)} belongs to no pallet of the runtime")
            by_name[storage.pallet].storage.append(storage)


def _classes_of_storage(pallets: Sequence[DeclaredPallet]) -> Iterator[type]:
    """Iterate over the classes that decode storage values and give their types the name."""
    for item in (storage.item for pallet in pallets for storage in pallet.storage):
        codecs = (getattr(item, name, None) for name in ("codec", "key_codec", "first_codec", "second_codec"))
        for codec in codecs:
            cls = None if codec is None else getattr(codec.decode, "__self__", None)
            if codec is not None and isinstance(cls, type) and cls.__name__ == codec.name:
                yield cls


def _reason_variant(reason: HoldReason) -> tuple[str, Any]:
    return reason.pallet, (reason.name, None)


def _errors_of(pallet: DeclaredPallet) -> PortableType:
    cases = tuple(Case(it.__name__, index, (), docs_of(it)) for index, it in enumerate(pallet.errors))
    return PortableType(Variants(cases), _path_of(pallet, "Error"))


def _path_of(pallet: DeclaredPallet, last: str) -> tuple[str, ...]:
    crate = "".join(f"_{it.lower()}" if it.isupper() else it for it in pallet.name)
    return f"pallet{crate}" if pallet.name != "System" else "frame_system", "pallet", last


def _era() -> Declaration:
    """Return ``Era``: immortal, or two bytes, the first of which is the variant."""
    byte = (FieldSyntax(None, Named("u8")),)
    mortal = tuple(CaseSyntax(f"Mortal{index}", index, byte) for index in range(1, 256))
    return Declaration(("sp_runtime", "generic", "era", "Era"), cases=(CaseSyntax("Immortal", 0), *mortal))


def _short(data: bytes) -> str:
    return data.hex() if len(data) <= SHOWN_BYTES else f"{data[:SHOWN_BYTES].hex()}... ({len(data):,} bytes)"
