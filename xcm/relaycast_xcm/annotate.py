"""Annotated bytes: every byte of a message with what it means, as ``relaycast xcm decode`` shows it.

The spans come from the decoder itself. Where the bytes go wrong the spans end, and the error stands beside them: what
was readable before it stays readable.
"""

from msgspec import Struct

from relaycast_trie.exceptions import CodecError
from relaycast_xcm.codec import Span, XcmReader
from relaycast_xcm.instructions import Xcm
from relaycast_xcm.message import V5, XcmCodec

BYTES_PER_LINE = 16


class Annotation(Struct, frozen=True):
    """The ``spans`` of some bytes, in order and without gaps, and their ``message``.

    Where the bytes go wrong there is no message but an ``error``, met at ``error_path``.
    """

    spans: tuple[Span, ...]
    message: Xcm | None
    error: CodecError | None = None
    error_path: str = ""

    def lines(self) -> list[str]:
        """Return one line for each span, long ones broken: offset, bytes, meaning."""
        shown = [line for span in self.spans for line in _lines_of(span)]
        if self.error is not None:
            shown.append(f"{self.error.offset:06x}  {'':<{3 * BYTES_PER_LINE}} {self.error_path}: {self.error}")
        return shown


def annotate(data: bytes, *, codec: XcmCodec = V5) -> Annotation:
    """Return what each byte of a ``VersionedXcm`` means; wrong bytes are told, not raised."""
    spans: list[Span] = []
    reader = XcmReader(data, spans=spans)
    try:
        message = codec.read(reader)
        reader.done()
    except CodecError as error:
        return Annotation(tuple(spans), None, error, reader.here())
    return Annotation(tuple(spans), message)


def _lines_of(span: Span) -> list[str]:
    rows = [span.data[at : at + BYTES_PER_LINE] for at in range(0, len(span.data), BYTES_PER_LINE)]
    texts = [span.meaning] + [""] * (len(rows) - 1)
    offsets = range(span.offset, span.offset + len(span.data), BYTES_PER_LINE)
    return [
        f"{at:06x}  {row.hex(' '):<{3 * BYTES_PER_LINE}} {text}".rstrip()
        for at, row, text in zip(offsets, rows, texts, strict=True)
    ]
