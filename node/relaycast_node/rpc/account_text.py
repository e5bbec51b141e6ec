"""Accounts as people write them: SS58 addresses, and 0x with hex digits."""

from hashlib import blake2b

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Base58 as Bitcoin and Substrate write it: no zero, no O, no I, no l."""

ACCOUNT_BYTES, CHECKSUM_BYTES = 32, 2
TWO_BYTE_PREFIX = 64
"""From this value on the first byte says that the prefix has two."""

LONGEST = 60
"""Letters that an address of an account has at most."""


def account_of(text: str) -> bytes | None:
    """Return the account that ``text`` names, of whichever network; ``None`` where it names none."""
    if text[:2] == "0x":
        try:
            data = bytes.fromhex(text[2:])
        except ValueError:
            return None
        return data if len(data) == ACCOUNT_BYTES and len(text) == 2 + 2 * ACCOUNT_BYTES else None
    data = _from_base58(text) if len(text) <= LONGEST else b""
    prefix = 2 if data[:1] >= bytes([TWO_BYTE_PREFIX]) else 1
    if len(data) != prefix + ACCOUNT_BYTES + CHECKSUM_BYTES:
        return None
    body, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    return body[prefix:] if blake2b(b"SS58PRE" + body).digest()[:CHECKSUM_BYTES] == checksum else None


def base58(data: bytes) -> str:
    """Return ``data`` in base58; zeros at the front are ones."""
    number, letters = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        letters = ALPHABET[digit] + letters
    return ALPHABET[0] * (len(data) - len(data.lstrip(b"\x00"))) + letters


def _from_base58(text: str) -> bytes:
    number = 0
    for letter in text:
        digit = ALPHABET.find(letter)
        if digit < 0:
            return b""
        number = number * len(ALPHABET) + digit
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
