"""The sections of a WebAssembly module: custom ones are read, and the memory is made the module's own.

Runtimes import their memory or export one. Nodes make an exported one of either, without a maximum, before they
compile (``RuntimeBlob``, ``convert_memory_import_into_export`` and ``setup_memory_according_to_heap_alloc_strategy``):
how large it becomes is the host's to say.
"""

from collections.abc import Iterator
from typing import NamedTuple

from relaycast_wasm.exceptions import NotARuntime

PREAMBLE_BYTES = 8
CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, EXPORT, CODE = 0, 1, 2, 3, 5, 7, 10
ORDER = (1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11)
"""In which order sections stand, by number."""

FUNCTION_KIND, TABLE_KIND, MEMORY_KIND, GLOBAL_KIND, TAG_KIND = range(5)
HAS_MAXIMUM = 1


class Section(NamedTuple):
    """A section as it stands in the module."""

    number: int
    content: bytes


class ImportEntry(NamedTuple):
    """An import: ``type`` is the number of a function's type, ``pages`` what a memory begins with."""

    module: bytes
    name: bytes
    kind: int
    encoded: bytes
    type: int = 0
    pages: int = 0


class ModuleReader:
    """Reads on from ``at``; raises ``NotARuntime`` where the bytes end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise NotARuntime(f"it is cut off: {length} bytes are missing at {self.at} of {len(self.data)}")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self) -> int:
        """Return an unsigned number in LEB128, of up to five bytes."""
        found = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1)
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise NotARuntime(f"the number that ends at {self.at} has more than five bytes")

    def name(self) -> bytes:
        return self.take(self.number())

    def limits(self) -> int:
        """Return the least of limits; a maximum is read over."""
        flags = self.number()
        if flags & ~HAS_MAXIMUM:
            raise NotARuntime("its memory is shared, or has addresses of 64 bits or pages of its own size")
        least = self.number()
        if flags & HAS_MAXIMUM:
            self.number()
        return least


def sections(wasm: bytes) -> Iterator[Section]:
    """Yield the sections of a module; raises ``NotARuntime``."""
    reader = ModuleReader(wasm, PREAMBLE_BYTES)
    while reader.at < len(wasm):
        (number,) = reader.take(1)
        yield Section(number, reader.take(reader.number()))


def custom_sections(wasm: bytes, name: str) -> list[bytes]:
    """Return what the custom sections called ``name`` hold."""
    found = []
    for section in sections(wasm):
        if section.number == CUSTOM:
            reader = ModuleReader(section.content)
            if reader.name() == name.encode():
                found.append(section.content[reader.at :])
    return found


def with_own_memory(wasm: bytes) -> bytes:
    """Return the module with an exported memory of its own that has no maximum; raises ``NotARuntime``."""
    content = list(sections(wasm))
    pages: list[int] = []
    for place, (number, data) in enumerate(content):
        if number == IMPORT:
            imports = list(import_entries(data))
            content[place] = Section(IMPORT, vector([it.encoded for it in imports if it.kind != MEMORY_KIND]))
            pages += [it.pages for it in imports if it.kind == MEMORY_KIND]
        elif number == MEMORY:
            reader = ModuleReader(data)
            pages += [reader.limits() for _ in range(reader.number())]
    if len(pages) != 1:
        raise NotARuntime(f"it has {len(pages)} memories, a runtime has one")
    content = [it for it in content if it.number != MEMORY]
    insert_section(content, Section(MEMORY, vector([b"\x00" + leb128(pages[0])])))
    _export_memory(content)
    return joined(wasm[:PREAMBLE_BYTES], content)


def joined(preamble: bytes, content: list[Section]) -> bytes:
    """Return a module of these sections."""
    return preamble + b"".join(bytes([number]) + leb128(len(data)) + data for number, data in content)


def import_entries(data: bytes) -> Iterator[ImportEntry]:
    """Yield what an import section holds; raises ``NotARuntime``."""
    reader = ModuleReader(data)
    for _ in range(reader.number()):
        start = reader.at
        module, name = reader.name(), reader.name()
        (kind,) = reader.take(1)
        type_, pages = 0, 0
        if kind == MEMORY_KIND:
            if (module, name) != (b"env", b"memory"):
                raise NotARuntime(f"it imports the memory {_shown(module)}.{_shown(name)}, a host gives env.memory")
            pages = reader.limits()
        elif kind == FUNCTION_KIND:
            type_ = reader.number()
        elif kind == TABLE_KIND:
            reader.take(1)
            reader.limits()
        elif kind == GLOBAL_KIND:
            reader.take(2)
        elif kind == TAG_KIND:
            reader.take(1)
            reader.number()
        else:
            raise NotARuntime(f"it imports {_shown(module)}.{_shown(name)} of the unknown kind {kind}")
        yield ImportEntry(module, name, kind, data[start : reader.at], type_, pages)


def _export_memory(content: list[Section]) -> None:
    """Let the memory be exported as ``memory``."""
    place = next((at for at, it in enumerate(content) if it.number == EXPORT), None)
    entries: list[bytes] = []
    if place is not None:
        reader = ModuleReader(content[place].content)
        for _ in range(reader.number()):
            start = reader.at
            name = reader.name()
            (kind,) = reader.take(1)
            reader.number()
            if name != b"memory":
                entries.append(reader.data[start : reader.at])
            elif kind != MEMORY_KIND:
                raise NotARuntime("what it exports as memory is none")
        del content[place]
    entries.append(b"\x06memory" + bytes([MEMORY_KIND, 0]))
    insert_section(content, Section(EXPORT, vector(entries)))


def insert_section(content: list[Section], section: Section) -> None:
    """Put a section where it belongs."""
    before = ORDER[: ORDER.index(section.number)]
    place = max((at + 1 for at, it in enumerate(content) if it.number in before), default=0)
    content.insert(place, section)


def vector(entries: list[bytes]) -> bytes:
    """Return the entries behind their number."""
    return leb128(len(entries)) + b"".join(entries)


def leb128(number: int) -> bytes:
    """Return an unsigned number in LEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def _shown(name: bytes) -> str:
    return name[:64].decode("utf-8", "replace")
