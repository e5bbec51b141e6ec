"""Which names speak of a credential: of headers, of properties, and of parameters in a sink's query."""

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

MASK = "***"
"""Stands for a secret wherever one would be shown."""

_SECRET_NAME = re.compile(r"auth|cookie|token|secret|passw|api[-_]?key|credential|signature", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(r"(?:.*[-_.])?(?:code|jwt|key|pass|pwd|sas|sig)", re.IGNORECASE | re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Return whether a header or property of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of a URL's query holds a secret, such as ``key``, ``sig`` or ``access_token``."""
    return is_secret_name(name) or _SECRET_PARAMETER.fullmatch(name) is not None


def query_parts(query: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield the parts of a query between ``&`` and ``;``: text before a secret, the name, and the secret itself.

    The secret is ``None`` for a part without one; the text is the whole part then. Joined again, text and secrets are
    the query.
    """
    for part in re.split(r"([&;])", query):
        name, equals, value = part.partition("=")
        plain_name = unquote_plus(name)
        if value and is_secret_parameter(plain_name):
            yield f"{name}{equals}", plain_name, value
        else:
            yield part, plain_name, None


def masked_query(query: str) -> str:
    """Return a query with a mask in place of each secret."""
    return "".join(text if secret is None else text + MASK for text, _, secret in query_parts(query))
