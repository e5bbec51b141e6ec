"""Namespaces of ICRC-72 and the patterns that select them.

```text
pattern   = component { "." component }
component = "*" | characters without "." and "*"
```
Law: a ``*`` at the beginning or at the end stands for one component or more, one in the middle for exactly one.
Patterns never select namespaces that begin with ``icrc`` and digits and a colon: these are the system's.
Source: ICRC-72, "Subscription Registration Namespaces", which leaves the language to implementations.
"""

import re
from dataclasses import dataclass, field

LONGEST_NAMESPACE = 1_024
"""Characters."""

WILDCARD = "*"
_RESERVED = re.compile(r"icrc\d+:")


def is_reserved(namespace: str) -> bool:
    """Return whether a namespace is the system's: ``icrc72:...``."""
    return _RESERVED.match(namespace) is not None


def is_namespace(text: str) -> bool:
    """Return whether ``text`` names one namespace: components without spaces, between dots, none empty."""
    return 0 < len(text) <= LONGEST_NAMESPACE and all(
        part and WILDCARD not in part and not any(map(str.isspace, part)) for part in text.split(".")
    )


@dataclass(frozen=True, slots=True)
class NamespacePattern:
    """Namespaces that are meant together; ``ValueError`` for a text that is no pattern."""

    text: str
    _form: re.Pattern[str] | None = field(init=False, default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = self.text.split(".")
        if not is_namespace(".".join("x" if part == WILDCARD else part for part in parts)):
            expected = "components between dots, each a word or *"
            raise ValueError(f"namespace: got {self.text[:80]!r}, expected {expected}")
        if self.has_wildcard:
            last = len(parts) - 1
            forms = [
                re.escape(part) if part != WILDCARD else "[^.]+" if 0 < at < last else r"[^.]+(?:\.[^.]+)*"
                for at, part in enumerate(parts)
            ]
            object.__setattr__(self, "_form", re.compile(r"\.".join(forms)))

    @property
    def has_wildcard(self) -> bool:
        return WILDCARD in self.text

    def matches(self, namespace: str) -> bool:
        """Return whether a namespace is one of them."""
        if self._form is None:
            return namespace == self.text
        return not is_reserved(namespace) and self._form.fullmatch(namespace) is not None
