"""SCALE values of registered types, from Python and back.

Values are integers, ``bool`` and ``str``, ``bytes`` for vectors and arrays of u8, lists for others, and tuples. A
struct with names is a dict; one around a single value is that value. A variant is ``(name, payload)``, where the
payload is ``None``, the one value, a tuple or a dict. An ``Option`` is the value or ``None``. Encoding also takes
objects. For a struct, that is one with the fields as attributes. For a variant, it is one whose class is called like
it, or a member of a Python ``Enum``. For a ``Result``, it is what went wrong, or ``None``.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from relaycast_node.metadata.portable_types import (
    Array,
    Case,
    Compact,
    Composite,
    Field,
    PortableRegistry,
    PortableType,
    Primitive,
    Sequence,
    Tuple,
    Variants,
)
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_vec
from relaycast_xcm.location import Location

Encode = Callable[[Any], bytes]
Decode = Callable[[ScaleReader], Any]

VariantOf = Callable[[Any], tuple[str, Any]]
"""Says of an object which variant it is, and what that holds."""

MAX_DEPTH = 64
"""Types that may stand inside one another: a call inside ``sudo`` inside ``sudo`` ends somewhere."""


class ValueCodec:
    """Encodes and decodes values of the types of a ``registry``.

    ``variants`` say of objects of a class which variant they are, where it is not the one called after the class.
    """

    def __init__(self, registry: PortableRegistry, variants: Mapping[type, VariantOf] | None = None) -> None:
        self._registry = registry
        self._variants = variants or {}
        self._encoders: dict[int, Encode] = {}
        self._decoders: dict[int, Decode] = {}
        self._depth = 0

    def encode(self, number: int, value: Any) -> bytes:
        """Return the bytes of a value; raises ``CodecError`` for one that does not fit the type."""
        try:
            return self._encoder(number)(value)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise CodecError(f"{value!r:.80} does not fit its type: {error}") from error

    def decode(self, number: int, data: bytes) -> Any:
        """Return the value that all of ``data`` encodes; raises ``CodecError``."""
        reader = ScaleReader(data)
        value = self.read(number, reader)
        reader.done()
        return value

    def read(self, number: int, reader: ScaleReader) -> Any:
        """Read one value and leave the rest; raises ``CodecError``."""
        decoder = self._decoders.get(number)
        if decoder is None:
            decoder = self._decoders[number] = self._made_decoder(self._registry[number])
        if self._depth >= MAX_DEPTH:
            raise CodecError(f"values stand at most {MAX_DEPTH} deep in one another", reader.offset)
        self._depth += 1
        try:
            return decoder(reader)
        finally:
            self._depth -= 1

    def _encoder(self, number: int) -> Encode:
        known = self._encoders.get(number)
        if known is None:
            self._encoders[number] = lambda value: self._encoders[number](value)  # noqa: PLW0108 - of a type in itself
            known = self._encoders[number] = self._made_encoder(self._registry[number])
        return known

    def _is_u8(self, number: int) -> bool:
        return self._registry[number].definition == Primitive("u8")

    def _made_encoder(self, portable: PortableType) -> Encode:  # noqa: PLR0911 - one for each kind of type
        match portable.definition:
            case Primitive(name):
                return _primitive_encoder(name)
            case Compact():
                return _encode_compact
            case Sequence(inner) if self._is_u8(inner):
                return _encode_bytes
            case Sequence(inner):
                item = self._encoder(inner)
                return lambda values: encode_vec(item(value) for value in values)
            case Array(length, inner):
                return self._array_encoder(length, inner)
            case Tuple(types):
                items = [self._encoder(it) for it in types]
                return lambda values: b"".join(item(value) for item, value in zip(items, values, strict=True))
            case Composite(fields):
                return self._fields_encoder(fields)
            case Variants(cases):
                return self._variants_encoder(portable, cases)

    def _array_encoder(self, length: int, inner: int) -> Encode:
        item = self._encoder(inner)
        is_bytes = self._is_u8(inner)

        def encode(value: Any) -> bytes:
            if len(value) != length:
                raise ValueError(f"expected {length} items, got {len(value)}")
            return bytes(value) if is_bytes else b"".join(map(item, value))

        return encode

    def _fields_encoder(self, fields: tuple[Field, ...]) -> Encode:
        encoders = [(it.name, self._encoder(it.type)) for it in fields]
        if len(encoders) == 1 and encoders[0][0] is None:
            return encoders[0][1]
        if not encoders or encoders[0][0] is None:
            return lambda values: b"".join(
                encode(value) for (_, encode), value in zip(encoders, values or (), strict=True)
            )
        return lambda value: b"".join(encode(_field_of(value, str(name))) for name, encode in encoders)

    def _variants_encoder(self, portable: PortableType, cases: tuple[Case, ...]) -> Encode:
        encoders = {it.name: (bytes([it.index]), self._fields_encoder(it.fields), it.fields) for it in cases}
        if portable.path == ("Option",):
            some = encoders["Some"][1]
            return lambda value: b"\x00" if value is None else b"\x01" + some(value)

        is_result = portable.path == ("Result",)

        def encode(value: Any) -> bytes:
            name, payload = _result_of(value) if is_result else self._variant_of(value)
            index, encoder, fields = encoders[name]
            return index + (encoder(payload) if fields else b"")

        return encode

    def _variant_of(self, value: Any) -> tuple[str, Any]:
        """Return the name of the variant that a value is, and what it holds."""
        if isinstance(value, str):
            return value, None
        if isinstance(value, tuple):
            name, payload = value
            return name, payload
        if isinstance(value, Enum):
            return value.name, None
        for cls, variant_of in self._variants.items():
            if isinstance(value, cls):
                return variant_of(value)
        return type(value).__name__, value

    def _made_decoder(self, portable: PortableType) -> Decode:  # noqa: PLR0911 - one for each kind of type
        match portable.definition:
            case Primitive(name):
                return _primitive_decoder(name)
            case Compact(inner):
                return self._compact_decoder(inner)
            case Sequence(inner) if self._is_u8(inner):
                return ScaleReader.bytes_
            case Sequence(inner):
                return lambda reader: [self.read(inner, reader) for _ in range(reader.length())]
            case Array(length, inner) if self._is_u8(inner):
                return lambda reader: reader.take(length)
            case Array(length, inner):
                return lambda reader: [self.read(inner, reader) for _ in range(length)]
            case Tuple(types):
                return lambda reader: tuple(self.read(it, reader) for it in types)
            case Composite(fields):
                return self._fields_decoder(fields)
            case Variants(cases):
                return self._variants_decoder(portable, cases)

    def _compact_decoder(self, inner: int) -> Decode:
        definition = self._registry[inner].definition
        if isinstance(definition, Tuple) and not definition.types:
            return lambda _: ()
        bits = int(definition.name[1:]) if isinstance(definition, Primitive) else 128

        def decode(reader: ScaleReader) -> int:
            start = reader.offset
            number = reader.compact()
            if number >> bits:
                raise CodecError(f"a compact u{bits} is at most {(1 << bits) - 1}, got {number}", start)
            return number

        return decode

    def _fields_decoder(self, fields: tuple[Field, ...]) -> Decode:
        if len(fields) == 1 and fields[0].name is None:
            only = fields[0].type
            return lambda reader: self.read(only, reader)
        if not fields or fields[0].name is None:
            return lambda reader: tuple(self.read(it.type, reader) for it in fields)
        return lambda reader: {it.name: self.read(it.type, reader) for it in fields}

    def _variants_decoder(self, portable: PortableType, cases: tuple[Case, ...]) -> Decode:
        decoders = {it.index: (it.name, self._fields_decoder(it.fields) if it.fields else _nothing) for it in cases}
        is_option = portable.path == ("Option",)
        called = "::".join(portable.path)

        def decode(reader: ScaleReader) -> Any:
            start = reader.offset
            index = reader.u8()
            found = decoders.get(index)
            if found is None:
                raise CodecError(f"{called} has no variant {index}", start)
            name, payload = found
            value = payload(reader)
            return value if is_option else (name, value)

        return decode


def _result_of(value: Any) -> tuple[str, Any]:
    if value is None:
        return "Ok", ()
    return value if isinstance(value, tuple) else ("Err", value)


def _nothing(_: ScaleReader) -> None:
    return None


def _field_of(value: Any, name: str) -> Any:
    """Return a field by the name that chains use; a Python attribute may carry an underscore behind it."""
    if isinstance(value, Mapping):
        return value[name]
    return getattr(value, name) if hasattr(value, name) else getattr(value, f"{name}_")


def _encode_bytes(value: Any) -> bytes:
    if isinstance(value, Location):
        return encode_bytes(value.encode())
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, got {type(value).__name__}")
    return encode_bytes(value)


def _encode_compact(value: Any) -> bytes:
    return b"" if value == () else encode_compact(int(value))


def _primitive_encoder(name: str) -> Encode:
    if name == "bool":
        return lambda value: b"\x01" if value else b"\x00"
    if name == "str":
        return lambda value: encode_bytes(value.encode())
    if name == "char":
        return lambda value: ord(value).to_bytes(4, "little")
    size, signed = int(name[1:]) // 8, name[0] == "i"
    return lambda value: int(value).to_bytes(size, "little", signed=signed)


def _primitive_decoder(name: str) -> Decode:
    if name == "bool":
        return _decode_bool
    if name == "str":
        return _decode_text
    if name == "char":
        return lambda reader: chr(int.from_bytes(reader.take(4), "little"))
    size, signed = int(name[1:]) // 8, name[0] == "i"
    return lambda reader: int.from_bytes(reader.take(size), "little", signed=signed)


def _decode_bool(reader: ScaleReader) -> bool:
    start = reader.offset
    number = reader.u8()
    if number > 1:
        raise CodecError(f"a bool is 0 or 1, got {number}", start)
    return number == 1


def _decode_text(reader: ScaleReader) -> str:
    start = reader.offset
    try:
        return reader.bytes_().decode()
    except UnicodeDecodeError as error:
        raise CodecError(f"a text is UTF-8: {error}", start) from error
