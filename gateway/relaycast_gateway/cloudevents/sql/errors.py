"""What can be wrong with an expression, and with evaluating one.

```text
ValueError
├── SqlParseError         it is no expression
└── SqlEvaluationError    it has no proper value for this event
```
"""

from typing import Literal

SqlValue = str | int | bool

SqlErrorKind = Literal["math", "cast", "missingFunction", "functionEvaluation", "missingAttribute", "generic"]


class SqlParseError(ValueError):
    """At character ``at`` (counted from 1) stands ``got`` where ``expected`` is needed."""

    value: SqlValue = False

    def __init__(self, at: int, got: str, expected: str) -> None:
        super().__init__(at, got, expected)
        self.at = at
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"character {self.at}: got {self.got}, expected {self.expected}"


class SqlEvaluationError(ValueError):
    """``value`` is the result that evaluation went on with."""

    def __init__(self, kind: SqlErrorKind, reason: str, value: SqlValue) -> None:
        super().__init__(kind, reason, value)
        self.kind = kind
        self.reason = reason
        self.value = value

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"
