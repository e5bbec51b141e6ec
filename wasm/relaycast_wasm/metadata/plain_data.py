"""Metadata as plain data for JSON: types as text, bytes as 0x hex, every member always there."""

from dataclasses import fields, is_dataclass
from typing import Any

from relaycast_wasm.metadata.model import Metadata, StorageEntry, TypeRef
from relaycast_wasm.metadata.type_table import TypeTable


def plain_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return all that the metadata says; of the registry the number of types."""
    plain: dict[str, Any] = plain_data(metadata)
    return plain


def plain_data(value: object) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a part of the model as dicts, lists, texts and numbers."""
    match value:
        case TypeRef():
            return value.text
        case TypeTable():
            return len(value)
        case bytes():
            return f"0x{value.hex()}"
        case tuple() | list():
            return [plain_data(it) for it in value]
        case StorageEntry():
            return {**_members(value), "kind": value.kind}
        case _ if is_dataclass(value):
            return _members(value)
        case _:
            return value


def _members(value: Any) -> dict[str, Any]:
    return {it.name: plain_data(getattr(value, it.name)) for it in fields(value)}
