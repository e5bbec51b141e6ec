"""Values of registry types as JSON: what fits a type, and where something does not.

py-scale-codec takes fields it does not know, numbers out of range and text for bytes. Here a value is held against the
type first: every field once, every number in its range, bytes as ``0x`` hex. Whole numbers may come as decimal text,
since JavaScript rounds large ones.

>>> types = {"Price": {"type": "struct", "type_mapping": [["dot", "u8"], ["feeds", "Vec<u16>"]]}}
>>> checked({"dot": "5", "feeds": [1]}, "Price", types)
{'dot': 5, 'feeds': [1]}
>>> checked({"dot": 256, "feeds": []}, "Price", types)
Traceback (most recent call last):
...
relaycast_xcm.registry.RegistryMismatch: dot: got 256, expected a u8
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.exceptions import InvalidScaleTypeValueException
from scalecodec.type_registry import load_type_registry_preset

from relaycast_trie.exceptions import CodecError

Types = Mapping[str, Any]
"""Definitions by name, as py-scale-codec takes them."""

HEX_BYTES = "HexBytes"
"""``Vec<u8>``, in JSON as ``0x`` hex: py-scale-codec's ``Bytes`` shows bytes that happen to be text as text."""

NULL, NOT_READ = "Null", "NotRead"

_INTEGER = re.compile(r"(?:Compact<)?([ui])(8|16|32|64|128|256)>?")
_ARRAY = re.compile(r"\[(\w+); (\d+)\]")
_GENERIC = re.compile(r"(Vec|Option)<(.+)>")
SHOWN_CHARACTERS = 60
LONGEST_NAME = 200
"""Characters of a type: a longer one is made of too many types inside types."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()
"""Stands for a field that is not there."""


class RegistryMismatch(ValueError):
    """The value at ``path`` is ``got``, where ``expected`` says what its type takes."""

    def __init__(self, path: str, got: object, expected: str) -> None:
        super().__init__(path, got, expected)
        self.path = path
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        text = ascii(self.got)
        shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
        return f"{self.path or 'value'}: got {shown}, expected {self.expected}"


def is_known(type_name: str, types: Types) -> bool:
    """Return whether ``type_name`` is a type: of the registry, a number, bytes, a truth value, or made of types."""
    if len(type_name) > LONGEST_NAME:
        return False
    if type_name in types or type_name in (HEX_BYTES, "bool") or _INTEGER.fullmatch(type_name):
        return True
    if array := _ARRAY.fullmatch(type_name):
        return int(array[2]) > 0 and is_known(array[1], types)
    generic = _GENERIC.fullmatch(type_name)
    return generic is not None and is_known(generic[2], types)


def checked(value: Any, type_name: str, types: Types, path: str = "") -> Any:
    """Return ``value`` as a value of the type; raises ``RegistryMismatch`` with the path of what is wrong."""
    definition = types.get(type_name)
    if isinstance(definition, str):
        return checked(value, definition, types, path)
    if definition is not None:
        check = _struct if definition["type"] == "struct" else _variant
        return check(value, type_name, dict(definition["type_mapping"]), types, path)
    if array := _ARRAY.fullmatch(type_name):
        return _array(value, array[1], int(array[2]), types, path)
    if generic := _GENERIC.fullmatch(type_name):
        if generic[1] == "Option" and value is None:
            return None
        return (_list if generic[1] == "Vec" else checked)(value, generic[2], types, path)
    return _simple(value, type_name, path)


def _simple(value: Any, type_name: str, path: str) -> Any:
    """Return a value of a type that is made of no others."""
    if integer := _INTEGER.fullmatch(type_name):
        return _integer(value, integer, path)
    if type_name == HEX_BYTES:
        return _hex(value, path)
    if type_name == "bool":
        return _expected(isinstance(value, bool), value, path, "true or false")
    if type_name == NULL:
        return _expected(value is None, value, path, "nothing")
    raise RegistryMismatch(path, value, "another variant: this one is known by name and not read")


def _struct(value: Any, type_name: str, fields: dict[str, str], types: Types, path: str) -> dict[str, Any]:
    named = f"an object with {', '.join(fields)}"
    _expected(isinstance(value, dict), value, path, named)
    for name in value:
        if name not in fields:
            raise RegistryMismatch(path, name, f"a field of {type_name}: {', '.join(fields)}")
    for name, kind in fields.items():
        if name not in value:
            raise RegistryMismatch(
                _below(path, name), MISSING, f"its {'bytes as 0x hex' if kind == HEX_BYTES else kind}"
            )
    return {name: checked(value[name], kind, types, _below(path, name)) for name, kind in fields.items()}


def _variant(value: Any, type_name: str, variants: dict[str, str], types: Types, path: str) -> Any:
    label, content = (value, None) if isinstance(value, str) else (None, None)
    if isinstance(value, dict) and len(value) == 1:
        label, content = next(iter(value.items()))
    readable = [name for name, kind in variants.items() if kind != NOT_READ]
    if label is None or label not in variants:
        got = value if label is None else label
        raise RegistryMismatch(path, got, f"a variant of {type_name}: {', '.join(readable)}")
    inside = checked(content, variants[label], types, _below(path, label))
    return label if variants[label] == NULL else {label: inside}


def _list(value: Any, item: str, types: Types, path: str) -> list[Any]:
    _expected(isinstance(value, list), value, path, f"a list of {item}")
    return [checked(each, item, types, f"{path}[{index}]") for index, each in enumerate(value)]


def _array(value: Any, item: str, count: int, types: Types, path: str) -> Any:
    if item != "u8":
        listed = _list(value, item, types, path)
        _expected(len(listed) == count, value, path, f"{count} of {item}")
        return listed
    text = _hex(value, path, expected=f"{count} bytes as 0x hex")
    _expected(len(text) == 2 + 2 * count, value, path, f"{count} bytes as 0x hex")
    return text


def _hex(value: Any, path: str, *, expected: str = "bytes as 0x hex") -> str:
    is_hex = isinstance(value, str) and re.fullmatch(r"0x(?:[0-9a-fA-F]{2})*", value) is not None
    _expected(is_hex, value, path, expected)
    return str(value).lower()


def _integer(value: Any, kind: re.Match[str], path: str) -> int:
    sign, bits = kind[1], int(kind[2])
    low, high = (-(1 << bits - 1), 1 << bits - 1) if sign == "i" else (0, 1 << bits)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,80}", value, re.ASCII):
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and low <= value < high
    _expected(fits, value, path, f"{'an' if kind[0] in ('i8', 'u8') and sign == 'i' else 'a'} {kind[0]}")
    return int(value)


def _expected(holds: bool, value: Any, path: str, expected: str) -> Any:
    if not holds:
        raise RegistryMismatch(path, value, expected)
    return value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


VERSION_SUFFIX = "V5"
"""What the names of XCM types end with; it may be left out."""


def type_registry() -> dict[str, Any]:
    """Return the type definitions as py-scale-codec takes them."""
    text = resources.files("relaycast_xcm").joinpath("registry.json").read_text(encoding="utf-8")
    registry: dict[str, Any] = json.loads(text)
    return registry


@lru_cache(maxsize=1)
def types() -> Types:
    """Return the definitions by name."""
    return MappingProxyType(type_registry()["types"])


def runtime_configuration() -> RuntimeConfigurationObject:
    """Return a py-scale-codec configuration that knows its own basic types and the types of pub-sub."""
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("core"))
    configuration.update_type_registry(type_registry())
    return configuration


def full_name(type_name: str) -> str | None:
    """Return the name of a type as the registry has it, ``None`` for no type.

    A type is a name of the registry, a number such as ``u32`` or ``Compact<u64>``, ``HexBytes``, ``bool``, or
    ``Vec<T>``, ``Option<T>`` and ``[T; N]`` of types; ``Vec<u8>`` and ``Bytes`` are ``HexBytes``.
    """
    name = "HexBytes" if type_name in ("Vec<u8>", "Bytes") else type_name
    if is_known(name, types()):
        return name
    versioned = f"{name}{VERSION_SUFFIX}"
    return versioned if versioned in types() else None


def scale_encode(type_name: str, value: object) -> bytes:
    """Return the bytes that py-scale-codec gives a value of a type; raises ``RegistryMismatch``."""
    name = _known(type_name)
    return bytes(_configuration().create_scale_object(name).encode(checked(value, name, types())).data)


def scale_decode(type_name: str, data: bytes) -> Any:
    """Return the value that py-scale-codec reads from all of ``data``.

    Raises ``CodecError`` for bytes that are short, left over, or not in canonical form, and for unknown variants.
    """
    name = _known(type_name)
    if not data:
        raise CodecError(f"0 bytes, a {name} has at least one", 0)
    stream = ScaleBytes(data)
    stream.get_next_bytes = lambda length: _taken(stream, length)
    try:
        value = _configuration().create_scale_object(name, stream).decode(check_remaining=False)
    except NotImplementedError:
        raise CodecError("a variant that is known by name and not read", stream.offset - 1) from None
    except RecursionError:
        raise CodecError("nested too deeply", stream.offset) from None
    except (ValueError, InvalidScaleTypeValueException) as error:
        raise CodecError(str(error), stream.offset) from None
    if stream.offset < len(data):
        raise CodecError(f"{len(data) - stream.offset} bytes left over", stream.offset)
    try:
        if scale_encode(name, value) == data:
            return checked(value, name, types())
    except RegistryMismatch as mismatch:
        raise CodecError(str(mismatch), 0) from None
    raise CodecError("a number in a form longer than it needs, or a flag that is neither 0 nor 1", 0)


def _taken(stream: Any, length: int) -> bytearray:
    """Return the next bytes, all of them: the library itself returns fewer where fewer are left."""
    left = stream.length - stream.offset
    if left < length:
        raise CodecError(f"{length} bytes expected, {left} left", stream.offset)
    taken: bytearray = stream.data[stream.offset : stream.offset + length]
    stream.offset += length
    return taken


def _known(type_name: str) -> str:
    name = full_name(type_name)
    if name is None:
        raise ValueError(f"{type_name!r} is no type of the registry")
    return name


@lru_cache(maxsize=1)
def _configuration() -> RuntimeConfigurationObject:
    return runtime_configuration()
