"""Metadata V14, V15 and V16: types by number in a registry that describes them all."""

from collections.abc import Mapping
from itertools import repeat

from relaycast_trie.exceptions import CodecError
from relaycast_wasm.metadata.model import (
    ApiFunction,
    ApiMetadata,
    CustomValue,
    Deprecation,
    ExtrinsicFormat,
    HashedBy,
    Metadata,
    NamedType,
    OuterEnums,
    PalletConstant,
    PalletItem,
    PalletMetadata,
    StorageEntry,
    TransactionExtension,
    TypeRef,
)
from relaycast_wasm.metadata.named_versions import HASHERS, MODIFIERS
from relaycast_wasm.metadata.reader import MetadataReader
from relaycast_wasm.metadata.type_table import TypeField, TypeTable, read_type_table
from relaycast_wasm.metadata.type_text import TypeTexts

ENTRY_KINDS = ("plain", "map")
"""``StorageEntryType``, in the order of its variants."""

Deprecations = Mapping[int, Deprecation]
"""Deprecations of an enum's variants, by index."""


def read_portable(reader: MetadataReader, version: int) -> Metadata:
    """Read what stands behind the version number of V14, V15 or V16; raises ``CodecError``."""
    types = read_type_table(reader)
    read = _PortableReader(reader, types, version)
    pallets = reader.items(read.pallet)
    if version == 14:
        extrinsic = read.extrinsic_14()
        read.type()
        return Metadata(version, pallets, extrinsic, types)
    extrinsic = read.extrinsic_15() if version == 15 else read.extrinsic_16()
    if version == 15:
        read.type()
    apis = reader.items(read.api)
    outer = OuterEnums(read.type(), read.type(), read.type())
    return Metadata(version, pallets, extrinsic, types, apis, outer, reader.items(read.custom))


class _PortableReader:
    """Reads the parts; what came with a later version is read from that version on."""

    def __init__(self, reader: MetadataReader, types: TypeTable, version: int) -> None:
        self.reader = reader
        self.types = types
        self.version = version
        self.texts = TypeTexts(types)

    def type(self) -> TypeRef:
        start = self.reader.offset
        number = self.reader.compact()
        if number >= len(self.types):
            raise CodecError(f"a type below {len(self.types):,} expected, got {number}", start)
        return self._ref(number)

    def _ref(self, number: int) -> TypeRef:
        return TypeRef(self.texts[number], number)

    def _deprecation(self) -> Deprecation | None:
        """``ItemDeprecationInfo``."""
        return self._deprecated("a deprecation") if self.version > 15 else None

    def _deprecated(self, what: str) -> Deprecation | None:
        reader = self.reader
        kind = reader.choice((0, 1, 2), what)
        if kind == 0:
            return None
        return Deprecation(reader.text(), reader.optional_text()) if kind == 2 else Deprecation()

    def _deprecations(self) -> Deprecations:
        """``EnumDeprecationInfo``, whose variants count from 1."""
        if self.version < 16:
            return {}
        found = {}
        for _ in range(self.reader.length(2)):
            index, start = self.reader.u8(), self.reader.offset
            deprecation = self._deprecated("the deprecation of a variant")
            if deprecation is None:
                raise CodecError("the deprecation of a variant is 1 or 2, got 0", start)
            found[index] = deprecation
        return found

    def pallet(self) -> PalletMetadata:
        reader, later = self.reader, self.version > 15
        name = reader.text()
        prefix, storage = (reader.text(), reader.items(self._entry)) if reader.option() else ("", ())
        calls = self._enum("calls")
        events = self._enum("events")
        constants = reader.items(self._constant)
        errors = self._enum("errors")
        associated = reader.items(self._associated_type) if later else ()
        views = reader.items(self._view_function) if later else ()
        index = reader.u8()
        docs = reader.texts() if self.version > 14 else ()
        return PalletMetadata(
            name=name,
            index=index,
            call_index=None if calls is None else index,
            event_index=None if events is None else index,
            prefix=prefix,
            storage=storage,
            calls=calls or (),
            events=events or (),
            errors=errors or (),
            constants=constants,
            view_functions=views,
            associated_types=associated,
            docs=docs,
            deprecation=self._deprecation(),
        )

    def _entry(self) -> StorageEntry:
        reader = self.reader
        name = reader.text()
        modifier = reader.choice(MODIFIERS[:2], "a storage item's modifier")
        hashers: tuple[HashedBy, ...] = ()
        keys: tuple[TypeRef, ...] = ()
        if reader.choice(ENTRY_KINDS, "a storage item's type") == "map":
            hashers = reader.items(self._hasher)
            keys = self._keys(self.type(), len(hashers))
        value, default = self.type(), reader.bytes_()
        docs = reader.texts()
        return StorageEntry(
            name, modifier, hashers, keys, value, default, docs, linked=False, deprecation=self._deprecation()
        )

    def _hasher(self) -> HashedBy:
        return self.reader.choice(HASHERS, "a hasher")

    def _keys(self, whole: TypeRef, hashers: int) -> tuple[TypeRef, ...]:
        """Return the keys of a map: of several hashers each takes one of a tuple."""
        assert whole.number is not None, "a number stands here"
        described = self.types[whole.number]
        if hashers > 1 and described.kind == "tuple" and len(described.inside) == hashers:
            return tuple(map(self._ref, described.inside))
        return (whole,)

    def _enum(self, what: str) -> tuple[PalletItem, ...] | None:
        """Read an ``Option`` of an enum of calls, events or errors, and return its variants."""
        reader = self.reader
        if not reader.option():
            return None
        start = reader.offset
        number = self.type().number
        assert number is not None, "a number stands here"
        described = self.types[number]
        if described.kind != "variant":
            raise CodecError(f"{what} are an enum, got type {number}, a {described.kind}", start)
        deprecations = self._deprecations()
        return tuple(
            PalletItem(it.name, it.index, self._fields(it.fields), it.docs, deprecations.get(it.index))
            for it in described.cases
        )

    def _fields(self, fields: tuple[TypeField, ...]) -> tuple[NamedType, ...]:
        return tuple(NamedType(it.name, self._ref(it.type)) for it in fields)

    def _constant(self) -> PalletConstant:
        name, rust_type, value = self.reader.text(), self.type(), self.reader.bytes_()
        return PalletConstant(name, rust_type, value, self.reader.texts(), self._deprecation())

    def _associated_type(self) -> NamedType:
        name, rust_type = self.reader.text(), self.type()
        self.reader.texts()
        return NamedType(name, rust_type)

    def _named(self) -> NamedType:
        name = self.reader.text()
        return NamedType(name, self.type())

    def _view_function(self) -> ApiFunction:
        return self._function(self.reader.take(32))

    def _api_function(self) -> ApiFunction:
        return self._function(b"")

    def _function(self, view_id: bytes) -> ApiFunction:
        name, inputs = self.reader.text(), self.reader.items(self._named)
        output, docs = self.type(), self.reader.texts()
        return ApiFunction(name, inputs, output, docs, self._deprecation(), view_id)

    def api(self) -> ApiMetadata:
        reader = self.reader
        name, functions, docs = reader.text(), reader.items(self._api_function), reader.texts()
        if self.version < 16:
            return ApiMetadata(name, functions, docs)
        return ApiMetadata(name, functions, docs, reader.compact(), self._deprecation())

    def custom(self) -> CustomValue:
        name, rust_type = self.reader.text(), self.type()
        return CustomValue(name, rust_type, self.reader.bytes_())

    def _extension(self) -> TransactionExtension:
        name = self.reader.text()
        return TransactionExtension(name, self.type(), self.type())

    def extrinsic_14(self) -> ExtrinsicFormat:
        """Read the format; the params of the extrinsic's type name its parts."""
        whole, version = self.type().number, self.reader.u8()
        assert whole is not None, "a number stands here"
        parts = {name: self._ref(number) for name, number in self.types[whole].params if number is not None}
        extensions = self.reader.items(self._extension)
        address, call, signature, extra = (parts.get(name) for name in ("Address", "Call", "Signature", "Extra"))
        return ExtrinsicFormat((version,), extensions, address, call, signature, extra)

    def extrinsic_15(self) -> ExtrinsicFormat:
        version = self.reader.u8()
        address, call, signature, extra = (read() for read in repeat(self.type, 4))
        return ExtrinsicFormat((version,), self.reader.items(self._extension), address, call, signature, extra)

    def extrinsic_16(self) -> ExtrinsicFormat:
        reader = self.reader
        versions = tuple(reader.bytes_())
        address, call, signature = (read() for read in repeat(self.type, 3))
        by_version = []
        for _ in range(reader.length(2)):
            version = reader.u8()
            by_version.append((version, reader.items(reader.compact)))
        extensions = reader.items(self._extension)
        return ExtrinsicFormat(versions, extensions, address, call, signature, None, tuple(by_version))
