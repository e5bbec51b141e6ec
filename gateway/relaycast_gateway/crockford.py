"""Numbers as Crockford Base32, the text form of every id.

Canonical text is upper case without check symbol, ``0`` for zero. Reading takes lower case, hyphens, and I, L, O for
1, 1, 0 as well. Source: ICRC-72, section on identifiers; Douglas Crockford, "Base 32".
"""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

_DIGITS = {character: number for number, character in enumerate(ALPHABET)}
_DIGITS |= {character.lower(): number for character, number in _DIGITS.items()}
_DIGITS |= {"I": 1, "i": 1, "L": 1, "l": 1, "O": 0, "o": 0}


def encode(number: int) -> str:
    """Return the text of a natural number of any size; ``ValueError`` for a negative one."""
    if number < 0:
        raise ValueError(f"expected a natural number, got {number}")
    digits = [ALPHABET[number & 31]]
    while number := number >> 5:
        digits.append(ALPHABET[number & 31])
    return "".join(reversed(digits))


def decode(text: str) -> int:
    """Return the number that ``text`` stands for; ``ValueError`` for other characters and for no digit at all."""
    digits = text.replace("-", "")
    if not digits:
        raise ValueError(f"expected Crockford Base32 digits, got {text!r}")
    number = 0
    for character in digits:
        digit = _DIGITS.get(character)
        if digit is None:
            raise ValueError(f"expected Crockford Base32, got {character!r} in {text!r}")
        number = number << 5 | digit
    return number
