"""The text of a Python file, decoded as Python itself decodes it."""

from __future__ import annotations

import io
import re
import tokenize

from ..files.message import Message

BOM = b"\xef\xbb\xbf"


class SourceError(Exception):
    """A file that cannot be read as Python 3.

    Args:
        message: what is wrong.
        line: 1-based line, 0 if unknown.
        col: 1-based column, 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0, col: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.col = col

    def __reduce__(self) -> tuple:
        return SourceError, (self.message, self.line, self.col)


def text_of(raw: bytes) -> str:
    """Return the text of a file. The positions of edits are offsets in it.

    Raises:
        SourceError: as decode_body() and encoding_of() do.
    """
    return decode_body(raw[len(BOM) * raw.startswith(BOM) :], encoding_of(raw))


def decode_body(body: bytes, encoding: str) -> str:
    """Return the text of a file after its byte order mark.

    Raises:
        SourceError: the bytes are not text in the encoding, or do not survive a round trip.
    """
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start]
        line_start = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
        raise SourceError(
            Message(
                'byte 0x{0} is not {1} text; declare the encoding in the first line, as in "# -*- coding: latin-1 -*-"',
                f"{body[error.start]:02x}",
                encoding,
            ),
            1 + len(re.findall(rb"\r\n|\r|\n", before)),
            error.start - line_start + 1,
        )
    if text.encode(encoding) != body:
        raise SourceError(Message("its {0} text does not encode back to the same bytes", encoding))
    return text


def encoding_of(raw: bytes) -> str:
    """Return the encoding of a file.

    Raises:
        SourceError: its coding cookie names an unknown one.
    """
    # Only the first two lines can hold a cookie; tokenize would take a file with lone carriage
    # returns for one single line.
    lines = b"\n".join(re.split(rb"\r\n|\r|\n", raw[len(BOM) * raw.startswith(BOM) :], maxsplit=2)[:2]) + b"\n"
    head = BOM * raw.startswith(BOM) + re.sub(rb"[\x80-\xff]", b"?", lines)  # the cookie itself is ASCII
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(head).readline)[0]
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            raise SourceError(Message("{0} in its coding cookie", error), 1, 1)
        return "utf-8"  # not UTF-8 at all: reported with the position when the file is decoded
    return "utf-8" if encoding == "utf-8-sig" else encoding
