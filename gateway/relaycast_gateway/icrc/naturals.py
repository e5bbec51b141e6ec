"""Natural numbers of any size, in messages and in the store.

Law: a ``nat`` of Candid has no bound, and Python writes no number of more than 4,300 digits in decimal.
"""

MOST_BITS_SHOWN = 256


def shown(number: int) -> str:
    """Return a number as a message shows it: in decimal, or by its length where it is long.

    >>> shown(12), shown(1 << 300)
    ('12', 'a number of 301 bits')
    """
    bits = number.bit_length()
    return str(number) if bits <= MOST_BITS_SHOWN else f"a number of {bits} bits"


def stored_number(number: int) -> str:
    """Return a number as text that ``loaded_number`` reads.

    >>> loaded_number(stored_number(1 << 300)) == 1 << 300
    True
    """
    return hex(number)


def loaded_number(text: str) -> int:
    """Return the number of a text; ``ValueError`` for one that holds none."""
    return int(text, 16)
