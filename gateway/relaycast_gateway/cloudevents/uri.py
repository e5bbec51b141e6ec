"""URI references by the grammar of RFC 3986."""

import re

_ESCAPE = r"%[0-9A-Fa-f]{2}"
_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;="
_PCHAR = rf"(?:[{_PLAIN}:@]|{_ESCAPE})"
_USER = rf"(?:[{_PLAIN}:]|{_ESCAPE})*@"
_HOST = rf"(?:\[[0-9A-Fa-f:.]+\]|(?:[{_PLAIN}]|{_ESCAPE})*)"
_AUTHORITY = rf"//(?:{_USER})?{_HOST}(?::[0-9]*)?(?:/{_PCHAR}*)*"
_ROOTED = rf"/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:\#(?:{_PCHAR}|[/?])*)?"
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_AUTHORITY}|{_ROOTED}|{_PCHAR}+(?:/{_PCHAR}*)*|)"
_RELATIVE = rf"(?:{_AUTHORITY}|{_ROOTED}|(?:[{_PLAIN}@]|{_ESCAPE})+(?:/{_PCHAR}*)*|)"

_REFERENCE = re.compile(rf"(?:{_ABSOLUTE}|{_RELATIVE}){_TAIL}")


def is_uri_reference(text: str) -> bool:
    """Return whether ``text`` is a URI or a relative reference; the empty text is one."""
    return _REFERENCE.fullmatch(text) is not None
