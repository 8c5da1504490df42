"""A strict reader for one table of a TOML file, for Python before 3.11, which has no tomllib.

It reads strings, integers, booleans and arrays of strings in that table, and ignores the rest of the file.
"""

from __future__ import annotations

import re
from typing import Match, Pattern

from ..files.message import Message

_STRING = r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_SPACE = re.compile(r"[ \t]*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_KEY = re.compile(rf"([A-Za-z0-9_-]+|{_STRING})[ \t]*=")
_VALUE = re.compile(
    rf"(?P<string>{_STRING})|(?P<flag>true|false)\b|(?P<number>[+-]?[0-9](?:_?[0-9])*)"
    r"(?![\w.:+-])|(?P<array>\[)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_LONG_STRING = re.compile(rf'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|#[^\n]*|{_STRING}', re.DOTALL)


class TomlError(ValueError):
    """The table has a value that this reader does not support.

    Args:
        message: the error.
        line: its 1-based line.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(Message("{0} (at line {1})", message, line))


def read_table(text: str, *names: str) -> dict[str, object]:
    """Return the keys and values of a table.

    Args:
        text: the TOML file.
        names: of the table, as in ``'tool', 'convert_tf2npu'`` for ``[tool.convert_tf2npu]``.

    Returns:
        its content; an empty dictionary if there is no such table.

    Raises:
        TomlError: the table has an unsupported value.
    """
    dotted = r"[ \t]*\.[ \t]*".join(r'(?:%s|"%s"|\'%s\')' % ((re.escape(n),) * 3) for n in names)
    header = re.compile(rf"^[ \t]*\[[ \t]*{dotted}[ \t]*(\]|\.)", re.MULTILINE)
    # multi-line strings and comments are no headers
    hidden = _LONG_STRING.sub(
        lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group().startswith(('"""', "'''", "#")) else m.group(), text
    )
    heading = header.search(hidden)
    if heading is None:
        return {}
    if heading.group(1) == ".":
        raise TomlError(Message("[{0}] cannot have subtables", ".".join(names)), _line_number(text, heading.end()))
    end = _REST_OF_LINE.match(text, heading.end())
    if end is None:
        raise TomlError("unexpected text after the name of the table", _line_number(text, heading.end()))
    return _pairs_of_table(text, end.end())


def _pairs_of_table(text: str, offset: int) -> dict[str, object]:
    table: dict[str, object] = {}
    while True:
        offset = _end_of_match(_SPACE_AND_LINES, text, offset)
        if offset == len(text) or text[offset] == "[":
            return table
        key = _KEY.match(text, offset)
        if key is None:
            raise TomlError("expected a line such as key = value", _line_number(text, offset))
        name = _parse_string(key.group(1), text, offset) if key.group(1)[0] in "\"'" else key.group(1)
        if name in table:
            raise TomlError(Message("duplicate key {0}", name), _line_number(text, offset))
        table[name], offset = _value_and_end(text, _end_of_match(_SPACE, text, key.end()))
        end = _REST_OF_LINE.match(text, offset)
        if end is None:
            raise TomlError(Message("unexpected text after the value of {0}", name), _line_number(text, offset))
        offset = end.end()


def _value_and_end(text: str, offset: int) -> tuple[object, int]:
    token = _VALUE.match(text, offset)
    if token is None or text.startswith(('"""', "'''"), offset):
        raise TomlError(
            "expected a string, an integer, true, false, or an array of strings", _line_number(text, offset)
        )
    if token.group("string"):
        return _parse_string(token.group(), text, offset), token.end()
    if token.group("flag"):
        return token.group() == "true", token.end()
    if token.group("number"):
        digits = token.group().replace("_", "")
        if len(digits.lstrip("+-")) > 1 and digits.lstrip("+-")[0] == "0":
            raise TomlError(Message("{0} begins with 0", digits), _line_number(text, offset))
        return int(digits), token.end()
    return _array_and_end(text, token.end())


def _array_and_end(text: str, offset: int) -> tuple[list[str], int]:
    items: list[str] = []
    while True:
        offset = _end_of_match(_SPACE_AND_LINES, text, offset)
        if text.startswith("]", offset):
            return items, offset + 1
        item = re.compile(_STRING).match(text, offset)
        if item is None:
            raise TomlError("expected a string in the array", _line_number(text, offset))
        items.append(_parse_string(item.group(), text, offset))
        offset = _end_of_match(_SPACE_AND_LINES, text, item.end())
        if text.startswith(",", offset):
            offset += 1
        elif not text.startswith("]", offset):
            raise TomlError("expected a comma, or the end of the array", _line_number(text, offset))


def _parse_string(literal: str, text: str, offset: int) -> str:
    if literal[0] == "'":
        return literal[1:-1]

    def unescaped(match: Match[str]) -> str:
        code = match.group(1) or match.group(2)
        if not code and match.group(3) not in _ESCAPED:
            raise TomlError(Message("{0} is not a valid escape", match.group()), _line_number(text, offset))
        return chr(int(code, 16)) if code else _ESCAPED[match.group(3)]

    return _ESCAPE.sub(unescaped, literal[1:-1])


def _end_of_match(pattern: Pattern[str], text: str, offset: int) -> int:
    match = pattern.match(text, offset)
    assert match is not None  # each pattern matches the empty text, too
    return match.end()


def _line_number(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
