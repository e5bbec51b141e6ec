"""One model for metadata of every version, 9 to 16.

Law: a value says what the bytes say. What a version does not have is empty or ``None``. V9 to V13 name their types as
Rust source does and describe none. Runtime APIs come with V15, view functions and deprecations with V16.
"""

from dataclasses import dataclass
from typing import Literal

from relaycast_wasm.metadata.type_table import TypeTable

Docs = tuple[str, ...]

Modifier = Literal["Optional", "Default", "Required"]
"""What a read of an absent item gives: nothing, or the default."""

HashedBy = Literal["Blake2_128", "Blake2_256", "Blake2_128Concat", "Twox128", "Twox256", "Twox64Concat", "Identity"]
"""How a map's key stands in the storage key."""


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as Rust-like ``text``; ``number`` is its place in the registry, ``None`` before V14."""

    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class NamedType:
    """An argument or a field; a field of a tuple-like event or call has no ``name``."""

    name: str | None
    type: TypeRef


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Why something is deprecated, and since when, where the runtime says so."""

    note: str | None = None
    since: str | None = None


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A storage item: plain without ``keys``, else a map with one hasher for each key.

    A map of several hashers whose key is no tuple of as many types keeps that one type.
    """

    name: str
    modifier: Modifier
    hashers: tuple[HashedBy, ...]
    keys: tuple[TypeRef, ...]
    value: TypeRef
    default: bytes
    docs: Docs = ()
    linked: bool = False
    """A map whose entries point at one another, as versions before V14 may have them."""
    deprecation: Deprecation | None = None

    @property
    def kind(self) -> Literal["plain", "map"]:
        return "map" if self.keys else "plain"


@dataclass(frozen=True, slots=True)
class PalletItem:
    """A call, an event or an error: its ``index`` inside the pallet, and what it carries."""

    name: str
    index: int
    fields: tuple[NamedType, ...] = ()
    docs: Docs = ()
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class PalletConstant:
    """A constant with its SCALE ``value``."""

    name: str
    type: TypeRef
    value: bytes
    docs: Docs = ()
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class ApiFunction:
    """A function that clients call: of a runtime API, or a view of a pallet, which has an ``id`` of 32 bytes."""

    name: str
    inputs: tuple[NamedType, ...]
    output: TypeRef
    docs: Docs = ()
    deprecation: Deprecation | None = None
    id: bytes = b""


@dataclass(frozen=True, slots=True)
class PalletMetadata:
    """A pallet. ``index`` is its place in errors, ``call_index`` and ``event_index`` those in calls and events.

    From V12 on they are one number; before, one counts pallets with calls, pallets with events, and all pallets.
    ``None`` means that there are no calls, or no events. ``prefix`` is what storage keys start with, hashed; it is
    empty without storage.
    """

    name: str
    index: int
    call_index: int | None = None
    event_index: int | None = None
    prefix: str = ""
    storage: tuple[StorageEntry, ...] = ()
    calls: tuple[PalletItem, ...] = ()
    events: tuple[PalletItem, ...] = ()
    errors: tuple[PalletItem, ...] = ()
    constants: tuple[PalletConstant, ...] = ()
    view_functions: tuple[ApiFunction, ...] = ()
    associated_types: tuple[NamedType, ...] = ()
    docs: Docs = ()
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class TransactionExtension:
    """A signed extension: its name, what a transaction carries for it, and what is signed unsent; both from V14 on."""

    name: str
    type: TypeRef | None = None
    additional: TypeRef | None = None


@dataclass(frozen=True, slots=True)
class ExtrinsicFormat:
    """How transactions are made: the ``versions`` that the runtime takes, and the extensions in their order.

    Metadata before V11 does not say.
    """

    versions: tuple[int, ...]
    extensions: tuple[TransactionExtension, ...]
    address: TypeRef | None = None
    call: TypeRef | None = None
    signature: TypeRef | None = None
    extra: TypeRef | None = None
    """In V14 the type of the whole extrinsic names these four; V16 has no ``extra``."""
    extensions_by_version: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """In V16, the extensions, by their place, that a transaction of each extension version carries."""


@dataclass(frozen=True, slots=True)
class ApiMetadata:
    """A runtime API; its ``version`` stands here from V16 on, and among the APIs of the runtime's version always."""

    name: str
    functions: tuple[ApiFunction, ...]
    docs: Docs = ()
    version: int | None = None
    deprecation: Deprecation | None = None


@dataclass(frozen=True, slots=True)
class OuterEnums:
    """The runtime's enums of all calls, events and errors."""

    call: TypeRef
    event: TypeRef
    error: TypeRef


@dataclass(frozen=True, slots=True)
class CustomValue:
    """What a runtime adds to its metadata under a name of its own."""

    name: str
    type: TypeRef
    value: bytes


@dataclass(frozen=True, slots=True)
class Metadata:
    """A runtime's metadata; ``types`` is the registry, ``None`` before V14."""

    version: int
    pallets: tuple[PalletMetadata, ...]
    extrinsic: ExtrinsicFormat
    types: TypeTable | None = None
    apis: tuple[ApiMetadata, ...] = ()
    outer_enums: OuterEnums | None = None
    custom: tuple[CustomValue, ...] = ()

    def pallet(self, name: str) -> PalletMetadata | None:
        """Return the pallet that is called ``name``."""
        return next((it for it in self.pallets if it.name == name), None)
