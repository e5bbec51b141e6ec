"""What a user typed or handed over and we cannot use.

Law: a refusal is one line that names the place, what stands there and what was expected. It is raised before anything
is written.
"""

from difflib import get_close_matches

SHOWN_CHARACTERS = 60
"""Characters of a long value that are shown, with its length."""

SENTENCE_CHARACTERS = 300
"""Characters shown of a server's message."""


class BadInput(Exception):
    """``place`` holds ``got``; ``expected`` says what would do, ``hint`` what may have been meant."""

    def __init__(self, place: str, got: str, expected: str, hint: str = "") -> None:
        super().__init__(place, got, expected, hint)
        self.place = place
        self.got = got
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        line = f"{self.place}: got {self.got}, expected {self.expected}"
        return one_line(f"{line} ({self.hint})" if self.hint else line)


def shown(value: object) -> str:
    """Return ``value`` as a refusal shows it: quoted, in ASCII, and short."""
    if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
        return f"{value[:SHOWN_CHARACTERS]!a}... ({len(value)} characters)"
    if isinstance(value, list | dict):
        kind, thing = ("a list", "item") if isinstance(value, list) else ("an object", "member")
        return f"{kind} of {len(value)} {thing}{'' if len(value) == 1 else 's'}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = ascii(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def short(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Return untrusted text for display: escaped, on one line, at most ``most`` characters of it.

    Printable, short text is unchanged.
    """
    line = one_line(text)
    return line if len(line) <= most else f"{line[:most]}..."


def nearest(name: str, names: list[str]) -> str:
    """Return a hint that names what is most like ``name``, or all there is when nothing is."""
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(sorted(names))}"


def one_line(text: str) -> str:
    """Return ``text`` on one line, with nothing in it that a terminal would obey."""
    return plain(" ".join(text.split()))


def plain(text: str) -> str:
    """Return ``text`` with an escape for whatever does not print, but for the ends of lines.

    Colours, titles, links and directions of writing are all made of such characters; lone surrogates cannot be written.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)
