"""What an expression of CloudEvents SQL comes to: its value, and the kind of error."""

from typing import Any

from relaycast_gateway.cloudevents import SqlEvaluationError, SqlParseError, evaluate_sql
from relaycast_gateway.cloudevents.event import Timestamp

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/s",
    "type": "com.example.created",
    "count": 5,
    "number": "10",
    "flag": True,
    "time": Timestamp(1_524_746_889_000_000_000),
    "raw": b"\x00\xff",
    "large": 1 << 40,
    "null": None,
    "data": "text",
}


Outcome = tuple[Any, str | None]


LEAST, MOST = -(1 << 31), (1 << 31) - 1


def outcome(expression: str | bool | int, event: dict[str, Any] | None = None) -> Outcome:
    """Return the value, and the kind of error if there is one."""
    try:
        return evaluate_sql(expression, EVENT if event is None else event), None
    except SqlParseError as error:
        return error.value, "parse"
    except SqlEvaluationError as error:
        return error.value, error.kind
