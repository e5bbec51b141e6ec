"""From the text of a filter to what it says; the grammar is in the docstring of the folder."""

from relaycast_gateway.icrc.candypath.syntax import (
    DEEPEST_BRACKETS,
    MOST_CHARACTERS,
    NULL,
    CandyPathError,
    Condition,
    Every,
    Literal,
    Path,
    PathComparison,
    Step,
    Where,
    literal,
    name_step,
)

OPERATORS = ("!~~=", "~~=", "!~=", "==", "!=", "<>", ">=", "<=", "~=", ">", "<")
"""Each before those that it starts with."""

OF_NULL = frozenset({"==", "!="})
"""Operators that compare null."""

_END_OF_NAME = frozenset(" .[]")
_NOT_IN_NAMES = frozenset("*$@=!<>~&|(){}\"'")
_NAME = "a name, an index or '*' (other characters after a backslash)"
_OPERATOR = "an operator between two spaces, such as ' == '"


def parse(text: str) -> Path | Condition:
    """Return the path or the condition that ``text`` is; ``CandyPathError`` names the place where it is none."""
    if len(text) > MOST_CHARACTERS:
        raise CandyPathError(text, MOST_CHARACTERS, f"at most {MOST_CHARACTERS} characters")
    surrogate = next((place for place, character in enumerate(text) if "\ud800" <= character <= "\udfff"), None)
    if surrogate is not None:
        raise CandyPathError(text, surrogate, "text without lone surrogates")
    return _Parser(text).filter()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def filter(self) -> Path | Condition:
        path = self._path()
        said = path if self._at == len(self._text) and not self._ends_in_colon() else self._condition(path)
        if self._at < len(self._text):
            raise self._error("' & ', ' | ' or the end")
        return said

    def _condition(self, first: Path) -> Condition:
        alternatives = [[self._comparison(first)]]
        while self._takes(" & ") or self._takes(" | "):
            if self._text[self._at - 2] == "|":
                alternatives.append([])
            alternatives[-1].append(self._comparison(self._path()))
        return tuple(map(tuple, alternatives))

    def _comparison(self, path: Path) -> PathComparison:
        if self._takes(": ["):
            return PathComparison(path, "==", self._list())
        start = self._at
        if self._takes(" "):
            operator = next((each for each in OPERATORS if self._takes(f"{each} ")), None)
            if operator is not None:
                reference = self._peek() in ("$", "@")
                if self._peek() == "?" and operator not in OF_NULL and self._text[self._at + 1 :][:1] in ("", " ", "]"):
                    raise self._error(f"a literal after {operator} other than '?', since null never fulfils it")
                return PathComparison(path, operator, self._path() if reference else (self._literal(" ]"),))
        self._at = start
        raise self._error(_OPERATOR)

    def _list(self) -> tuple[Literal, ...]:
        found = [self._list_item()]
        while self._takes(", "):
            found.append(self._list_item())
        if not self._takes("]"):
            raise self._error("', ' or ']' in a list")
        return tuple(found)

    def _list_item(self) -> Literal:
        if self._peek() in ("", " ", "]", ","):
            raise self._error("a literal")
        return self._literal(" ],")

    def _path(self) -> Path:
        start = self._peek()
        steps: list[Step] = []
        if start in ("$", "@"):
            self._at += 1
        elif start != "[":
            steps.append(self._step())
        while True:
            if self._takes("."):
                steps.append(self._step())
            elif self._takes("["):
                steps.append(self._where())
            else:
                break
        if self._peek() not in ("", " ", "]") and not self._ends_in_colon():
            raise self._error("'.', '[', a space or the end after a path")
        return Path(start == "$", tuple(steps))

    def _where(self) -> Where:
        if self._depth == DEEPEST_BRACKETS:
            self._at -= 1
            raise self._error(f"brackets at most {DEEPEST_BRACKETS} deep")
        self._depth += 1
        condition = self._condition(self._path())
        self._depth -= 1
        if not self._takes("]"):
            raise self._error("' & ', ' | ' or ']'")
        return Where(condition)

    def _step(self) -> Step:
        if self._takes("*"):
            return Every()
        characters: list[str] = []
        escaped = False
        while (character := self._peek()) not in _END_OF_NAME and character and not self._ends_in_colon():
            if character in _NOT_IN_NAMES:
                raise self._error(_NAME)
            if character == "\\":
                escaped = True
                character = self._escaped()
            self._at += 1
            characters.append(character)
        if not characters:
            raise self._error(_NAME)
        return name_step("".join(characters), escaped=escaped)

    def _literal(self, ends: str) -> Literal:
        start = self._at
        characters: list[str] = []
        escaped = False
        while (character := self._peek()) and character not in ends:
            if character == "?":
                if characters or self._text[self._at + 1 : self._at + 2] not in ("", *ends):
                    raise self._error("'?' alone, for null, or '\\?'")
                self._at += 1
                return NULL
            if character in "$@" and self._at == start:
                raise self._error("a literal (other characters after a backslash)")
            if character == "\\":
                escaped = True
                character = self._escaped()
            self._at += 1
            characters.append(character)
        return literal("".join(characters), escaped=escaped)

    def _escaped(self) -> str:
        self._at += 1
        if not self._peek():
            raise self._error("a character after the backslash")
        return self._peek()

    def _ends_in_colon(self) -> bool:
        """Return whether a list follows here: ``: [``."""
        return self._text.startswith(": [", self._at)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _takes(self, expected: str) -> bool:
        found = self._text.startswith(expected, self._at)
        self._at += found * len(expected)
        return found

    def _error(self, expected: str) -> CandyPathError:
        return CandyPathError(self._text, self._at, expected)
