"""Types as Rust-like text: ``BTreeMap<u32, Vec<u8>>``, of a path the last segment.

Law: the text has an end. What is too long, too deep or contains itself by its parameters goes on as ``..``.
"""

from relaycast_wasm.metadata.type_table import DescribedType, TypeTable

MAX_CHARACTERS = 1_000
MAX_DEPTH = 32
CUT = ".."


class _Full(Exception):
    """The text is as long as it may be."""


class TypeTexts:
    """Writes the types of a ``table``, each once."""

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self._known: dict[int, str] = {}

    def __getitem__(self, number: int) -> str:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = _Text(self._table).of(number)
        return known


class _Text:
    """Writes one type; every step writes at least one character, so that the limit bounds the work."""

    def __init__(self, table: TypeTable) -> None:
        self.table = table
        self.pieces: list[str] = []
        self.left = MAX_CHARACTERS

    def of(self, number: int) -> str:
        try:
            self._write_type(number, 0)
        except _Full:
            self.pieces.append(CUT)
        return "".join(self.pieces)

    def _write(self, text: str) -> None:
        self.pieces.append(text[: self.left])
        self.left -= len(text)
        if self.left < 0:
            raise _Full

    def _write_type(self, number: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._write(CUT)
            return
        described = self.table[number]
        match described.kind:
            case "primitive":
                self._write(described.name)
            case "sequence":
                self._write_list("Vec<", described.inside, ">", depth)
            case "array":
                self._write_list("[", described.inside, f"; {described.length}]", depth)
            case "tuple":
                self._write_list("(", described.inside, ",)" if len(described.inside) == 1 else ")", depth)
            case "compact":
                self._write_list("Compact<", described.inside, ">", depth)
            case "bits":
                self._write_list("BitVec<", described.inside, ">", depth)
            case "composite" | "variant":
                self._write_path(described, depth)

    def _write_path(self, described: DescribedType, depth: int) -> None:
        self._write(described.path[-1] if described.path else "struct" if described.kind == "composite" else "enum")
        params = tuple(number for _, number in described.params if number is not None)
        if params:
            self._write_list("<", params, ">", depth)

    def _write_list(self, opening: str, numbers: tuple[int, ...], closing: str, depth: int) -> None:
        self._write(opening)
        for place, number in enumerate(numbers):
            if place:
                self._write(", ")
            self._write_type(number, depth + 1)
        self._write(closing)
