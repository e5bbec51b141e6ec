"""Filter dialects straight from their definition, the same filters in CloudEvents SQL, and random ones."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st

from relaycast_gateway.cloudevents.event import Timestamp

NAMES = ("type", "source", "subject", "time", "count", "flag", "blob")
PIECES = ("a", "A", "b", "ab", "%", "_", "'", '"', "é", ".", "\n", "5", "-", "true", "1970-01-01T00:00:0", "Z")


def holds(given: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Return what the text says of one filter and one event."""
    ((dialect, content),) = given.items()
    if dialect == "not":
        return not holds(content, attributes)
    if dialect == "all":
        return sum(holds(each, attributes) for each in content) == len(content)
    if dialect == "any":
        return sum(holds(each, attributes) for each in content) > 0
    ((name, expected),) = content.items()
    if name not in attributes:
        return False
    text = wire_text(attributes[name])
    if dialect == "prefix":
        text = text[: len(expected)]
    if dialect == "suffix":
        text = text[max(0, len(text) - len(expected)) :]
    return text == str(expected)


def wire_text(value: object) -> str:
    """Return an attribute as CloudEvents writes it in a header."""
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Timestamp):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(value) // 10**9)
        fraction = f"{int(value) % 10**9:09}".rstrip("0")
        return f"{moment:%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}Z"
    return f"{value}"


def in_sql(given: Mapping[str, Any]) -> str:
    """Return the expression that selects the same events."""
    ((dialect, content),) = given.items()
    if dialect == "not":
        return f"NOT ({in_sql(content)})"
    if dialect in {"all", "any"}:
        return "(" + (" AND " if dialect == "all" else " OR ").join(map(in_sql, content)) + ")"
    ((name, expected),) = content.items()
    quoted = expected.replace("'", "\\'")
    if dialect == "exact":
        return f"(EXISTS {name} AND {name} = '{quoted}')"
    literal = quoted.replace("%", "\\%").replace("_", "\\_")
    pattern = f"{literal}%" if dialect == "prefix" else f"%{literal}"
    return f"(EXISTS {name} AND {name} LIKE '{pattern}')"


_texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join)
_leaves = st.builds(
    lambda dialect, name, text: {dialect: {name: text}},
    st.sampled_from(["exact", "prefix", "suffix"]),
    st.sampled_from(NAMES),
    _texts,
)
filters: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _leaves,
    lambda inner: (
        inner.map(lambda each: {"not": each})
        | st.builds(lambda name, many: {name: many}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1))
    ),
    max_leaves=12,
)
values = _texts | st.booleans() | st.integers(-60, 60) | st.binary(max_size=3) | st.integers(0, 10**10).map(Timestamp)
events = st.dictionaries(st.sampled_from(NAMES), values)


def random_filter(random: Random, depth: int = 4) -> dict[str, Any]:
    """Return a filter, ``depth`` deep at most."""
    dialect = random.choice(["exact", "prefix", "suffix"] + ["all", "any", "not"] * (depth > 1))
    if dialect == "not":
        return {"not": random_filter(random, depth - 1)}
    if dialect in {"all", "any"}:
        return {dialect: [random_filter(random, depth - 1) for _ in range(random.randint(1, 3))]}
    return {dialect: {random.choice(NAMES): random_text(random, 1)}}


def random_event(random: Random) -> dict[str, Any]:
    """Return attributes of every type; those that no event needs may be absent."""
    kinds = (
        lambda: random_text(random, 0),
        lambda: random_text(random, 0),
        lambda: random.random() < 0.5,
        lambda: random.randint(-60, 60),
        lambda: random.randbytes(random.randint(0, 3)),
        lambda: Timestamp(random.randint(0, 10**10)),
    )
    return {name: random.choice(kinds)() for name in NAMES if name in {"type", "source"} or random.random() < 0.8}


def random_text(random: Random, least: int) -> str:
    return "".join(random.choices(PIECES, k=random.randint(least, 3)))
