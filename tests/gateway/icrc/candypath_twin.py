"""CandyPath straight from its definition, on filters that are drawn as trees and written as text.

A filter is a path or alternatives of comparisons. A path is a start and steps. A comparison is (path, operator,
target); a target is a text, a list of texts, ``None`` for null, or a path.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from relaycast_gateway.icrc16 import NOTHING, Icrc16, Property, Tag, array, blob, boolean, map_of, nat, option, text
from relaycast_gateway.principal import principal_text

OPERATORS = ("==", "!=", "<>", ">", ">=", "<", "<=", "~=", "~~=", "!~=", "!~~=")
NAMES = ("a", "b", "c d", "x.y", "k:l", "0", "-1", "1", "")
TEXTS = ("a", "A", "ab", "aB c", "", "5", "true", "1.5", "é", "ß", "SS")
LITERALS = (*TEXTS, "-1", "0", "1", "1.50", ".5", "false", "2vxsx-fae", "?", "]", "$a", "a,b", "\\")
SPECIAL = " .[]*$@=!<>~&|\\?,"
WHOLE = {tag for tag in Tag if tag.startswith(("Nat", "Int")) and tag is not Tag.NATS}


class TwinPath(NamedTuple):
    """``start`` is ``$``, ``@`` or nothing; a step is a name, ``True`` for ``*``, or a condition."""

    start: str
    steps: list[Any]


def selects(said: Any, tree: Icrc16) -> bool:
    """Return what the definition says of one filter and one tree."""
    if isinstance(said, TwinPath):
        return any(bare(value) not in (NOTHING, boolean(False)) for value in found(said, tree, tree))
    return satisfied(said, tree, tree)


def satisfied(condition: Any, root: Icrc16, current: Icrc16) -> bool:
    return any(all(compared(each, root, current) for each in alternative) for alternative in condition)


def found(path: TwinPath, root: Icrc16, current: Icrc16) -> list[Icrc16]:
    values = [root if path.start == "$" else current]
    for step in path.steps:
        values = [inner for value in values for inner in inside(bare(value), step, root)]
    return values or [NOTHING]


def bare(value: Icrc16) -> Icrc16:
    return bare(value.content) if value.tag == "Option" and value.content is not None else value


def listed(value: Icrc16) -> list[Icrc16] | None:
    kinds = {"Nats": Tag.NAT, "Floats": Tag.FLOAT, "Bytes": Tag.NAT8}
    if value.tag in ("Array", "Set"):
        return list(value.content)
    return [Icrc16(kinds[value.tag], each) for each in value.content] if value.tag in kinds else None


def inside(value: Icrc16, step: Any, root: Icrc16) -> Iterator[Icrc16]:
    items = listed(value)
    if step is True:
        yield from items or []
    elif isinstance(step, list):
        yield from (item for item in items or [] if satisfied(step, root, item))
    elif value.tag in ("Map", "Class"):
        yield from [entry[1] for entry in value.content if entry[0] == step][:1]
    elif value.tag == "ValueMap":
        yield from [entry[1] for entry in value.content if entry[0] == text(step)][:1]
    elif items is not None and value.tag != "Set" and step in ("0", "1", "-1"):
        yield from items[-1:] if step == "-1" else items[int(step) : int(step) + 1]


def compared(comparison: Any, root: Icrc16, current: Icrc16) -> bool:
    path, operator, target = comparison
    values = [bare(value) for value in found(path, root, current)]
    if isinstance(target, TwinPath):
        others = [bare(value) for value in found(target, root, current)]
        pairs = [(a, b) if a.tag == b.tag else None for a in values for b in others]
        nulls = any(a == b == NOTHING for a in values for b in others)
    else:
        wanted = target if isinstance(target, list) else [target]
        pairs = [as_literal(value, each) for value in values for each in wanted if each is not None]
        nulls = None in wanted and NOTHING in values
    outcomes = [relation(operator, *pair) for pair in pairs if pair is not None]
    outcomes = [each for each in outcomes if each is not None]
    if operator == "==":
        return any(outcomes) or nulls
    if operator == "!=":
        return not any(outcomes) and not nulls
    if operator in ("<>", "!~=", "!~~="):
        return bool(outcomes) and not any(outcomes)
    return any(outcomes)


def as_literal(value: Icrc16, written: str) -> tuple[Icrc16, Icrc16] | None:  # noqa: PLR0911 - one for each type
    tag, content = value
    try:
        if tag == "Text":
            return value, text(written)
        if tag == "Principal":
            return text(f"principal {principal_text(content)}"), text(f"principal {written}")
        if tag == "Blob":
            return value, blob(written.encode())
        if tag == "Bool":
            return value, boolean({"true": True, "false": False}[written])
        if tag in WHOLE:
            return value, Icrc16(tag, int(written))
        return (value, Icrc16(tag, float(written))) if tag == "Float" else None
    except (KeyError, ValueError):
        return None


def relation(operator: str, left: Icrc16, right: Icrc16) -> bool | None:
    tag, a, b = left.tag, left.content, right.content
    if "~" in operator:
        if tag != "Text" or a.startswith("principal "):
            return None
        return b.casefold() in a.casefold() if "~~" in operator else b in a
    if tag not in ("Text", "Principal", "Blob", "Bool", "Float") and tag not in WHOLE:
        return None
    meaning = {"==": a == b, "!=": a == b, "<>": a == b, ">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b}
    return bool(meaning[operator])


def written(said: Any) -> str:
    """Return the text of a filter."""
    if isinstance(said, TwinPath):
        return path_text(said)
    return " | ".join(" & ".join(comparison_text(*each) for each in alternative) for alternative in said)


def path_text(path: TwinPath) -> str:
    pieces = [path.start]
    for step in path.steps:
        if isinstance(step, list):
            pieces.append(f"[{written(step)}]")
        else:
            pieces.append(("." if "".join(pieces) else "") + ("*" if step is True else escaped(step)))
    return "".join(pieces)


def comparison_text(path: TwinPath, operator: str, target: Any) -> str:
    if isinstance(target, list):
        return (
            f"{path_text(path)}: [{', '.join('?' if each is None else escaped(each, numbers=True) for each in target)}]"
        )
    if isinstance(target, TwinPath):
        return f"{path_text(path)} {operator} {path_text(target)}"
    return f"{path_text(path)} {operator} {'?' if target is None else escaped(target, numbers=True)}"


def escaped(plain: str, *, numbers: bool = False) -> str:
    special = SPECIAL.replace(".", "") if numbers else SPECIAL
    return "".join(f"\\{character}" if character in special else character for character in plain)


def random_path(random: Random, depth: int, *, starts: tuple[str, ...] = ("", "", "$", "@")) -> TwinPath:
    start = random.choice(starts)
    steps: list[Any] = []
    for _ in range(random.randint(0 if start else 1, 3)):
        kind = random.random()
        if kind < 0.15:
            steps.append(True)
        elif kind < 0.3 and depth:
            steps.append(random_condition(random, depth - 1))
        else:
            steps.append(random.choice(NAMES[:-1]))
    return TwinPath(start, steps)


def random_condition(random: Random, depth: int) -> list[list[Any]]:
    return [
        [_comparison(random, depth) for _ in range(random.choice((1, 1, 2)))] for _ in range(random.choice((1, 1, 2)))
    ]


def random_filter(random: Random) -> Any:
    return random_path(random, 2) if random.random() < 0.1 else random_condition(random, 2)


def _comparison(random: Random, depth: int) -> Any:
    path, kind = random_path(random, depth), random.random()
    if kind < 0.1:
        return path, "==", [random.choice((*filter(None, LITERALS), None)) for _ in range(random.randint(1, 3))]
    if kind < 0.3:
        return path, random.choice(OPERATORS), random_path(random, depth, starts=("$", "@"))
    if kind < 0.4:
        return path, random.choice(("==", "!=")), None
    return path, random.choice(OPERATORS), random.choice(LITERALS)


def random_tree(random: Random, depth: int) -> Icrc16:
    """Return a tree whose names and contents the filters above know."""
    several = [random_tree(random, depth - 1) for _ in range(random.randint(1, 4))] if depth else []
    kind = random.randrange(7) if depth else 7
    match kind:
        case 0 | 1:
            return map_of(dict(zip(random.sample(NAMES, len(several)), several, strict=True)))
        case 2 | 3:
            return array(*several)
        case 4:
            return Icrc16(Tag.SET, tuple(several)) if random.random() < 0.5 else option(several[0])
        case 5:
            return Icrc16(Tag.CLASS, tuple(Property(random.choice(NAMES), each, True) for each in several))
        case 6:
            return Icrc16(Tag.VALUE_MAP, tuple((text(random.choice(NAMES)), each) for each in several))
    return _leaf(random)


def _leaf(random: Random) -> Icrc16:
    number = random.randint(-1, 6)
    return random.choice(
        (
            text(random.choice(TEXTS)),
            text(random.choice(TEXTS)),
            blob(random.choice(TEXTS).encode()),
            boolean(number > 2),
            nat(abs(number)),
            Icrc16(Tag.INT, number),
            Icrc16(Tag.NAT8, abs(number)),
            Icrc16(Tag.INT64, number),
            Icrc16(Tag.FLOAT, random.choice((0.0, 1.5, -1.0, 5.0, float("nan")))),
            Icrc16(Tag.FLOATS, (1.5, 5.0)),
            Icrc16(Tag.NATS, (1, 5)),
            Icrc16(Tag.BYTES, b"\x00\x05"),
            Icrc16(Tag.PRINCIPAL, random.choice((b"\x04", b"\x01"))),
            NOTHING,
            option(NOTHING),
        )
    )
