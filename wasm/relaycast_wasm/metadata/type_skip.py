"""How many bytes a value takes, by its type: the reader goes on behind it."""

from collections.abc import Iterable

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.metadata.type_table import DescribedType, TypeTable

MAX_DEPTH = 64
"""Types that may stand inside one another."""

MAX_STEPS = 100_000
"""Values that one value may hold: those without bytes end at no end of the data."""

_BYTES = {"bool": 1, "char": 4}


class TypeSkip:
    """Skips values of the types of a ``table``."""

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self._steps = 0

    def skip(self, number: int, reader: ScaleReader) -> None:
        """Leave the reader behind one value; raises ``CodecError`` where the bytes are none of that type."""
        self._steps = 0
        self._skip(number, reader, 0)

    def _skip(self, number: int, reader: ScaleReader, depth: int) -> None:
        self._steps += 1
        if depth > MAX_DEPTH or self._steps > MAX_STEPS:
            raise CodecError(f"a value at most {MAX_DEPTH} deep and of {MAX_STEPS:,} parts expected", reader.offset)
        described = self._table[number]
        match described.kind:
            case "primitive":
                name = described.name
                if name == "str":
                    reader.bytes_()
                else:
                    reader.take(_BYTES.get(name) or int(name[1:]) // 8)
            case "compact":
                if self._has_bytes(described.inside[0]):
                    reader.compact()
            case "bits":
                self._skip_bits(described, reader)
            case "sequence":
                self._skip_all((described.inside[0] for _ in range(reader.compact())), reader, depth)
            case "array":
                self._skip_all((described.inside[0] for _ in range(described.length)), reader, depth)
            case "composite" | "tuple":
                self._skip_all(described.numbers(), reader, depth)
            case "variant":
                start, index = reader.offset, reader.u8()
                case = next((it for it in described.cases if it.index == index), None)
                if case is None:
                    raise CodecError(f"{'::'.join(described.path)} has no variant {index}", start)
                self._skip_all((it.type for it in case.fields), reader, depth)

    def _skip_all(self, numbers: Iterable[int], reader: ScaleReader, depth: int) -> None:
        for number in numbers:
            self._skip(number, reader, depth + 1)

    def _has_bytes(self, number: int) -> bool:
        described = self._table[number]
        return bool(described.kind != "tuple" or described.inside)

    def _skip_bits(self, described: DescribedType, reader: ScaleReader) -> None:
        """Skip a number of bits and the store's words that hold them."""
        store = self._table[described.inside[0]]
        word_bits = int(store.name[1:]) if store.name.startswith("u") else 8
        reader.take((reader.compact() + word_bits - 1) // word_bits * (word_bits // 8))
