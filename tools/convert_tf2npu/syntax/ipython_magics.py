"""The lines of a notebook cell that belong to IPython and not to Python.

A placeholder of the same length replaces them while the cell is parsed, so that positions stay correct. They are never
edited.
"""

from __future__ import annotations

import ast
import re

# Cell magics whose cell is Python that runs like other cells. All others (%%bash, %%writefile, %%javascript ...) pass
# their text to another program.
_PYTHON_CELLS = frozenset({"capture", "memit", "prun", "snakeviz", "time", "timeit"})

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_MAGIC = re.compile(r"[ \t]*(?=[%!?])")
_ASSIGNED = re.compile(r'[ \t]*[A-Za-z_][^=!%#\'"]*=[ \t]*(?=[%!])')
_HELP = re.compile(r"[ \t]*(?=%{0,2}[A-Za-z_*][\w.*]*\?{1,2}[ \t]*;?[ \t]*$)")
_COMMAND = re.compile(r"[ \t]*(?=(?:cat|cd|conda|cp|ls|mkdir|mv|pip3?|rm|rmdir)[ \t]+[\w./~*-])")
_TOKEN = re.compile(r'#.*|"""|\'\'\'|"|\'|[\[\](){}]')


def python_of(cell: str) -> str | None:
    """Return the text of a cell with everything masked that is not Python.

    Args:
        cell: the text of a code cell.

    Returns:
        a text of the same length with the same line ends; None if the whole cell is not Python.
    """
    lines = _LINES.findall(cell)
    pieces: list[str] = []
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].lstrip().startswith("%%"):
        name = re.match(r"[ \t]*%%(\w*)", lines[first])
        if not name or name.group(1) not in _PYTHON_CELLS:
            return None
        # blank, so that no edit is put before the line that must stay the first
        pieces = lines[:first] + [_mask_from(lines[first], 0, " ", " ")]
        lines = lines[first + 1 :]
    state = "", 0  # the quotes of the string, and how many brackets, the line begins in
    at = 0
    while at < len(lines):
        start = _magic_start(lines[at]) if state == ("", 0) else None
        if start is None:
            state = _state_after_line(lines[at], state)
            pieces.append(lines[at])
            at += 1
        else:
            end = _magic_end(lines, at)
            pieces += _masked_lines(lines[at:end], start)
            at = end
    return "".join(pieces)


def _magic_end(lines: list[str], index: int) -> int:
    """Return the number of the line after a magic, which a backslash continues as in a shell."""
    end = index + 1
    while end < len(lines) and lines[end].strip() and lines[end - 1].rstrip("\r\n").endswith("\\"):
        end += 1
    return end


def _masked_lines(lines: list[str], start: int) -> list[str]:
    """Return one expression that spans the lines, so that no edit is put between them."""
    if len(lines) == 1:
        return [_mask_from(lines[0], start, "0", "#")]
    return (
        [_mask_from(lines[0], start, "[", "#")]
        + [_mask_from(line, 0, "#", "#") for line in lines[1:-1]]
        + [_mask_from(lines[-1], 0, "]", "#")]
    )


def _magic_start(line: str) -> int | None:
    """Return the position at which a line that starts a statement stops being Python."""
    for pattern in (_MAGIC, _ASSIGNED, _HELP):
        match = pattern.match(line)
        if match:
            return match.end()
    match = _COMMAND.match(line)
    return match.end() if match and not _is_python(line.strip()) else None


def _is_python(line: str) -> bool:
    try:
        ast.parse(line)
    except (SyntaxError, ValueError):
        return False
    return True


def _mask_from(line: str, start: int, first: str, filler: str) -> str:
    body = line.rstrip("\r\n")
    length = len(body) - start
    return body[:start] + (first + filler * (length - 1) if length > 0 else "") + line[len(body) :]


def _state_after_line(line: str, state: tuple[str, int]) -> tuple[str, int]:
    """Return the quotes of the string and the depth of brackets in which the next line begins."""
    quotes, depth = state
    body = line.rstrip("\r\n")
    at = 0
    while True:
        if quotes:
            closing = re.compile(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL).match(body, at)
            if closing is None:
                goes_on = len(quotes) == 3 or _ends_with_continuation(body[at:])
                return (quotes if goes_on else "", depth)
            at, quotes = closing.end(), ""
            continue
        match = _TOKEN.search(body, at)
        if match is None:
            # a statement that a backslash continues is inside something as well
            return ("", depth or -1) if _ends_with_continuation(body[at:]) else ("", max(depth, 0))
        token, at = match.group(), match.end()
        if token[0] == "#":
            return "", max(depth, 0)
        if token in "([{":
            depth = max(depth, 0) + 1
        elif token in ")]}":
            depth = max(depth - 1, 0)
        else:
            quotes = token


def _ends_with_continuation(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
