"""JSON as a client sends it: no name twice in an object, no number that JSON lacks, no deep nesting."""

import json
from typing import Any, NoReturn

DEEPEST = 80
"""Arrays and objects inside one another. A filter that is 32 deep has two of them at each step."""


class MalformedJson(ValueError):
    """``at`` says where; ``got`` and ``expected`` what stands there and what would do."""

    def __init__(self, at: str, got: str, expected: str) -> None:
        super().__init__(at, got, expected)
        self.at = at
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.at}: got {self.got}, expected {self.expected}"


def parse_json(data: bytes) -> Any:
    """Return the value that UTF-8 JSON stands for; raises ``MalformedJson``."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson(f"byte {error.start + 1}", "bytes that are no UTF-8", "JSON in UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise MalformedJson(at, error.msg[:1].lower() + error.msg[1:], "JSON") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # a whole number with more digits than Python converts
        if isinstance(error, MalformedJson):
            raise
        raise MalformedJson("the document", "a number with thousands of digits", "numbers of ordinary size") from None
    _bound(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedJson("an object", f"the member {twice[:64]!a} twice", "each member once")
    return found


def _no_number(name: str) -> NoReturn:
    raise MalformedJson("a number", name, "a number of JSON")


def _bound(value: Any) -> None:
    """Raise where values nest too deep, and for text that is no Unicode: half of a surrogate pair."""
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise _too_deep()


def _inside(value: Any) -> list[Any]:
    if isinstance(value, str):
        _text(value)
    if isinstance(value, dict):
        for name in value:
            _text(name)
        return list(value.values())
    return value if isinstance(value, list) else []


def _text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedJson("a text", "half of a surrogate pair", "text of Unicode") from None


def _too_deep() -> MalformedJson:
    return MalformedJson("the document", f"values nested more than {DEEPEST} deep", f"at most {DEEPEST}")
