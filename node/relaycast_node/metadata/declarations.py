"""What pallets declare, read from the pallets themselves: storage items, calls, events, errors and constants.

Law: nothing is declared twice. A storage item is an attribute that is one. A call is a public method whose first
argument is an ``Origin``. An event or an error is a class in a module of the pallet's folder. A constant is an argument
or a field of its configuration whose annotation names a Rust type. Their order in the source gives their indices.
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import Struct

from relaycast_node.metadata.python_types import attribute_docs, docs_of
from relaycast_pallets.balances import HoldReason
from relaycast_pallets.frame.dispatch import DispatchError, Origin
from relaycast_pallets.frame.system import Event
from relaycast_pallets.frame.typed_storage import (
    StorageCodec,
    StorageDoubleMap,
    StorageHasher,
    StorageMap,
    StorageValue,
)
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import Rust

StorageItem = StorageValue[Any] | StorageMap[Any, Any] | StorageDoubleMap[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class DocstringPlace:
    """Where a docstring stands: behind an ``attribute`` of a class. It is read when somebody asks for it."""

    cls: type
    attribute: str

    @property
    def docs(self) -> tuple[str, ...]:
        return attribute_docs(self.cls).get(self.attribute, ())


@dataclass(frozen=True, slots=True)
class DeclaredCall:
    """A call: its ``name``, the annotation of each argument, and the docstring of the method."""

    name: str
    arguments: dict[str, object]
    docs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeclaredConstant:
    """A constant with its annotation, and the ``place`` of its docstring."""

    name: str
    annotation: object
    value: object
    place: DocstringPlace | None = None

    @property
    def docs(self) -> tuple[str, ...]:
        return () if self.place is None else self.place.docs


@dataclass(frozen=True, slots=True)
class DeclaredStorage:
    """A storage item, and the ``place`` of its docstring."""

    item: StorageItem
    place: DocstringPlace

    @property
    def docs(self) -> tuple[str, ...]:
        return self.place.docs

    @property
    def pallet(self) -> str:
        return self.item.name[0]


@dataclass(slots=True)
class DeclaredPallet:
    """All that one pallet declares; ``index`` is its place in the runtime, ``target`` answers its calls."""

    name: str
    index: int
    target: object = None
    storage: list[DeclaredStorage] = field(default_factory=list)
    calls: list[DeclaredCall] = field(default_factory=list)
    events: list[type[Event]] = field(default_factory=list)
    errors: list[type[DispatchError]] = field(default_factory=list)
    constants: list[DeclaredConstant] = field(default_factory=list)
    hold_reasons: list[HoldReason] = field(default_factory=list)
    docs: tuple[str, ...] = ()


def declare(
    name: str, index: int, target: object = None, *, modules: Sequence[ModuleType] | None = None
) -> DeclaredPallet:
    """Return what the pallet ``target`` declares but for its storage; one without a target has events alone.

    Events and errors stand in the ``modules`` of its folder, unless others are given.
    """
    if target is None:
        return DeclaredPallet(name, index, events=list(_events_in(modules or (), name)))
    modules = _modules_of(type(target)) if modules is None else modules
    return DeclaredPallet(
        name,
        index,
        target,
        calls=list(_calls_of(type(target))),
        events=list(_events_in(modules, name)),
        errors=[it for it in _classes_in(modules, DispatchError) if it.variant == "Module"],
        constants=list(_constants_of(target)),
        hold_reasons=[it for module in modules for it in vars(module).values() if _is_reason_of(it, name)],
        docs=docs_of(modules[0]) if modules else (),
    )


def storage_in(holder: object) -> Iterator[DeclaredStorage]:
    """Iterate over the storage items among the attributes of an object, and of what it calls its ``storage``."""
    for name, value in _attributes(holder):
        if isinstance(value, StorageValue | StorageMap | StorageDoubleMap):
            yield DeclaredStorage(value, DocstringPlace(type(holder), name))
        elif name in {"storage", "inbound"}:
            yield from storage_in(value)


def ensure_key(item: StorageItem, key: bytes) -> None:
    """Raise ``ValueError`` unless a raw key that begins with the item's prefix is one of its keys."""
    rest = key[len(item.prefix) :]
    if isinstance(item, StorageValue):
        if rest:
            raise ValueError(f"expected only 0x{item.prefix.hex()}, the key of its one value")
    elif isinstance(item, StorageMap):
        _ensure_hashed(item.hasher, item.key_codec, rest)
    else:
        split = item.split - len(item.prefix)
        _ensure_hashed(item.first_hasher, item.first_codec, rest[:split])
        _ensure_hashed(item.second_hasher, item.second_codec, rest[split:])


def _ensure_hashed(hasher: StorageHasher, codec: StorageCodec[Any], hashed: bytes) -> None:
    expected = f"expected a {codec.name} hashed with {hasher.name}"
    if not hasher.keeps_key:
        if len(hashed) != hasher.hash_bytes:
            raise ValueError(f"{expected}, {hasher.hash_bytes} bytes, got {len(hashed)}")
        return
    encoded = hasher.key_in(hashed)
    try:
        codec.decode(encoded)
    except (CodecError, ValueError) as error:
        raise ValueError(f"{expected}: {error}") from None
    if hasher.digest(encoded) != hashed:
        raise ValueError(f"{expected}, got the hash of another key")


def _attributes(holder: object) -> Iterator[tuple[str, Any]]:
    if hasattr(holder, "__dict__"):
        yield from vars(holder).items()
        return
    for name in getattr(holder, "__slots__", ()):
        if hasattr(holder, name):
            yield name, getattr(holder, name)


def _modules_of(cls: type) -> list[ModuleType]:
    """Return the modules of a pallet's folder, that of its class first; a pallet in one module has no folder."""
    own = cls.__module__
    if own.count(".") == 1:
        return [sys.modules[own]]
    folder = own.rpartition(".")[0] + "."
    others = [name for name in sys.modules if name.startswith(folder) and name != own]
    return [sys.modules[name] for name in (own, *sorted(others))]


def _events_in(modules: Iterable[ModuleType], pallet: str) -> Iterator[type[Event]]:
    return (it for it in _classes_in(modules, Event) if it.pallet == pallet)


def _classes_in(modules: Iterable[ModuleType], base: type) -> Iterator[Any]:
    """Iterate over the classes that the modules define under ``base`` and that no other class in them refines."""
    found = [
        it
        for module in modules
        for it in vars(module).values()
        if isinstance(it, type) and issubclass(it, base) and it is not base and it.__module__ == module.__name__
    ]
    return (it for it in found if not any(other is not it and issubclass(other, it) for other in found))


def _calls_of(cls: type) -> Iterator[DeclaredCall]:
    for name, method in vars(cls).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        names = list(inspect.signature(method).parameters)[1:]
        hints = get_type_hints(method, include_extras=True) if names[:1] == ["origin"] else {}
        if hints.get("origin") is Origin:
            yield DeclaredCall(name, {it: hints[it] for it in names[1:]}, docs_of(method))


def _constants_of(target: object) -> Iterator[DeclaredConstant]:
    """Iterate over what a pallet was made with: keyword arguments that it keeps, and the fields of its ``config``."""
    config = getattr(target, "config", None)
    is_value = isinstance(config, Struct) or dataclasses.is_dataclass(config)
    holder, maker = (config, type(config)) if is_value else (target, type(target).__init__)
    for name, hint in get_type_hints(maker, include_extras=True).items():
        if hasattr(holder, name) and _names_a_rust_type(hint):
            yield DeclaredConstant(camel_case(name), hint, getattr(holder, name), DocstringPlace(type(holder), name))


def _names_a_rust_type(hint: object) -> bool:
    return get_origin(hint) is Annotated and any(isinstance(it, Rust) for it in get_args(hint)[1:])


def _is_reason_of(value: object, pallet: str) -> bool:
    return isinstance(value, HoldReason) and value.pallet == pallet


def camel_case(name: str) -> str:
    """Return ``max_value_length`` as ``MaxValueLength``."""
    return "".join(part.capitalize() for part in name.split("_"))
