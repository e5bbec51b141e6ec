"""The types of pub-sub for py-scale-codec: its users decode and encode what parachains publish and subscribe to.

``registry.json`` has the format of that library. A variant of the type ``NotRead``, which no registry defines, fails
there as it does here: it is known by name and not read.
"""

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset


def type_registry() -> dict[str, Any]:
    """Return the type definitions as py-scale-codec takes them."""
    text = resources.files("relaycast_xcm").joinpath("registry.json").read_text(encoding="utf-8")
    registry: dict[str, Any] = json.loads(text)
    return registry


def runtime_configuration() -> RuntimeConfigurationObject:
    """Return a py-scale-codec configuration that knows its own basic types and the types of pub-sub."""
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("core"))
    configuration.update_type_registry(type_registry())
    return configuration


def scale_encode(type_name: str, value: object) -> bytes:
    """Return the bytes that py-scale-codec gives a value of a type of the registry."""
    return bytes(_configuration().create_scale_object(type_name).encode(value).data)


def scale_decode(type_name: str, data: bytes) -> Any:
    """Return the value that py-scale-codec reads from ``data`` as a type of the registry."""
    return _configuration().create_scale_object(type_name, ScaleBytes(data)).decode()


@lru_cache(maxsize=1)
def _configuration() -> RuntimeConfigurationObject:
    return runtime_configuration()
