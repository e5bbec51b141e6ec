"""Metadata V9 to V13: types by the names that the source gives them, no registry."""

from collections.abc import Iterable
from dataclasses import replace

from relaycast_wasm.metadata.model import (
    ExtrinsicFormat,
    HashedBy,
    Metadata,
    Modifier,
    NamedType,
    PalletConstant,
    PalletItem,
    PalletMetadata,
    StorageEntry,
    TransactionExtension,
    TypeRef,
)
from relaycast_wasm.metadata.reader import MetadataReader

HASHERS: tuple[HashedBy, ...] = (
    "Blake2_128", "Blake2_256", "Blake2_128Concat", "Twox128", "Twox256", "Twox64Concat", "Identity",
)  # fmt: skip
"""``StorageHasher``, in the order of its variants, the same from V11 to V16."""

EARLY_HASHERS = {9: tuple(it for it in HASHERS if it not in {"Blake2_128Concat", "Identity"}), 10: HASHERS[:-1]}

MODIFIERS: tuple[Modifier, ...] = ("Optional", "Default", "Required")
"""``StorageEntryModifier``, in the order of its variants; the third exists up to V13."""

ENTRY_KINDS = ("plain", "map", "double map", "map of several keys")
"""``StorageEntryType``, in the order of its variants; the fourth exists from V13 on."""


def read_named(reader: MetadataReader, version: int) -> Metadata:
    """Read what stands behind the version number of V9 to V13; raises ``CodecError``."""
    pallets = _with_indices(reader.items(_ModuleReader(reader, version).module), numbered=version > 11)
    if version < 11:
        return Metadata(version, pallets, ExtrinsicFormat((), ()))
    extrinsic = ExtrinsicFormat((reader.u8(),), tuple(TransactionExtension(name) for name in reader.texts()))
    return Metadata(version, pallets, extrinsic)


def _with_indices(modules: Iterable[PalletMetadata], *, numbered: bool) -> tuple[PalletMetadata, ...]:
    """Give pallets their indices: a present ``call_index`` or ``event_index`` says that there are calls, or events."""
    pallets, calls, events = [], 0, 0
    for place, module in enumerate(modules):
        has_calls, has_events = module.call_index is not None, module.event_index is not None
        index = module.index if numbered else place
        pallets.append(
            replace(
                module,
                index=index,
                call_index=(index if numbered else calls) if has_calls else None,
                event_index=(index if numbered else events) if has_events else None,
            )
        )
        calls += has_calls
        events += has_events
    return tuple(pallets)


class _ModuleReader:
    """Reads modules, as pallets were called then."""

    def __init__(self, reader: MetadataReader, version: int) -> None:
        self.reader = reader
        self.version = version
        self.kinds = ENTRY_KINDS if version > 12 else ENTRY_KINDS[:3]
        self.hashers = EARLY_HASHERS.get(version, HASHERS)

    def module(self) -> PalletMetadata:
        reader = self.reader
        name = reader.text()
        prefix, storage = (reader.text(), reader.items(self._entry)) if reader.option() else ("", ())
        calls = _numbered(reader.items(self._call)) if reader.option() else None
        events = _numbered(reader.items(self._event)) if reader.option() else None
        constants = reader.items(self._constant)
        errors = _numbered(reader.items(self._error))
        return PalletMetadata(
            name=name,
            index=reader.u8() if self.version > 11 else 0,
            call_index=None if calls is None else 0,
            event_index=None if events is None else 0,
            prefix=prefix,
            storage=storage,
            calls=calls or (),
            events=events or (),
            errors=errors,
            constants=constants,
        )

    def _type(self) -> TypeRef:
        """Read a type's name, which goes over several lines where the source does."""
        return TypeRef(" ".join(self.reader.text().split()))

    def _entry(self) -> StorageEntry:
        reader = self.reader
        name = reader.text()
        modifier = reader.choice(MODIFIERS, "a storage item's modifier")
        hashers, keys, value, linked = self._entry_type()
        default = reader.bytes_()
        return StorageEntry(name, modifier, hashers, keys, value, default, reader.texts(), linked)

    def _entry_type(self) -> tuple[tuple[HashedBy, ...], tuple[TypeRef, ...], TypeRef, bool]:
        reader = self.reader
        kind = reader.choice(self.kinds, "a storage item's type")
        if kind == "plain":
            return (), (), self._type(), False
        if kind == "map":
            hasher, key, value = self._hasher(), self._type(), self._type()
            return (hasher,), (key,), value, reader.flag()
        if kind == "double map":
            first, first_key, second_key, value = self._hasher(), self._type(), self._type(), self._type()
            return (first, self._hasher()), (first_key, second_key), value, False
        keys, hashers = reader.items(self._type), reader.items(self._hasher)
        return hashers, keys, self._type(), False

    def _hasher(self) -> HashedBy:
        return self.reader.choice(self.hashers, "a hasher")

    def _call(self) -> PalletItem:
        name = self.reader.text()
        return PalletItem(name, 0, self.reader.items(self._argument), self.reader.texts())

    def _argument(self) -> NamedType:
        name = self.reader.text()
        return NamedType(name, self._type())

    def _event(self) -> PalletItem:
        name = self.reader.text()
        fields = tuple(NamedType(None, it) for it in self.reader.items(self._type))
        return PalletItem(name, 0, fields, self.reader.texts())

    def _error(self) -> PalletItem:
        return PalletItem(self.reader.text(), 0, (), self.reader.texts())

    def _constant(self) -> PalletConstant:
        name, rust_type = self.reader.text(), self._type()
        return PalletConstant(name, rust_type, self.reader.bytes_(), self.reader.texts())


def _numbered(items: Iterable[PalletItem]) -> tuple[PalletItem, ...]:
    return tuple(replace(it, index=place) for place, it in enumerate(items))
