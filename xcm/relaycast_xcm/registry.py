"""The types of pub-sub for py-scale-codec: its users decode and encode what parachains publish and subscribe to.

``registry.json`` has the format of that library. A variant of the type ``NotRead``, which no registry defines, fails
there as it does here: it is known by name and not read. The functions here are stricter than the library: a value fits
its type, and bytes are read from the first to the last, in their one canonical form.

>>> scale_encode("TtlState", {"ValidFor": 5}).hex()
'0105000000'
>>> scale_decode("Location", bytes.fromhex("000100411f"))
{'parents': 0, 'interior': {'X1': [{'Parachain': 2000}]}}
"""

import json
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.exceptions import InvalidScaleTypeValueException
from scalecodec.type_registry import load_type_registry_preset

from relaycast_trie.exceptions import CodecError
from relaycast_xcm.registry_values import RegistryMismatch, Types, checked, is_known

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
