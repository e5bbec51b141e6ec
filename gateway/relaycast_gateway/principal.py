"""Principals: who produced an event, as on the Internet Computer, at most 29 bytes.

The text form is CRC-32 and bytes in lower-case Base32, in groups of five. Source: Internet Computer interface
specification, "Principals" and "Textual representation of principals".
"""

import base64
from binascii import crc32

from relaycast_trie import blake2_256

MOST_BYTES = 29
ANONYMOUS = b"\x04"
_OPAQUE = b"\x01"


def chain_principal(genesis_hash: bytes) -> bytes:
    """Return the principal of a chain: an opaque id of its genesis hash."""
    return blake2_256(b"relaycast chain" + genesis_hash)[: MOST_BYTES - 1] + _OPAQUE


def client_principal(realm: str, authid: str) -> bytes:
    """Return the principal of a client that was authenticated as ``authid`` in a WAMP realm: an opaque id of both."""
    return blake2_256(f"relaycast client {len(realm)} {realm} {authid}".encode())[: MOST_BYTES - 1] + _OPAQUE


def principal_of_name(name: str) -> bytes:
    """Return the principal of a token that states only a name."""
    return client_principal("icrc", name)


def principal_text(principal: bytes) -> str:
    """Return the text form; ``ValueError`` for more than 29 bytes."""
    if len(principal) > MOST_BYTES:
        raise ValueError(f"a principal is at most {MOST_BYTES} bytes long, got {len(principal)}")
    encoded = base64.b32encode(crc32(principal).to_bytes(4, "big") + principal).decode().rstrip("=").lower()
    return "-".join(encoded[at : at + 5] for at in range(0, len(encoded), 5))


def principal_of(text: str) -> bytes:
    """Return the bytes of a principal's text; ``ValueError`` where it is none in its canonical form."""
    digits = text.replace("-", "").upper()
    try:
        raw = base64.b32decode(digits + "=" * (-len(digits) % 8))
    except ValueError:
        raw = b""
    if len(raw) < 4 or len(raw) > MOST_BYTES + 4 or principal_text(raw[4:]) != text:
        raise ValueError(f"expected the text of a principal, got {text!r}")
    return raw[4:]
