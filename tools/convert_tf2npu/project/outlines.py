"""The outline of a file, read from its text: its functions and methods, and the names in the code of each.

To parse every file that a program reaches would take too long.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from typing import Iterator, NamedTuple

from ..files.extensions import NOTEBOOK
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError

MODULE, GUARD = "", "__main__"
ALL = "*"
CALL = "("
_BLANKS = re.compile(r"[ \t]+")
# Strings and comments, as they stand in the text. A string with f before it has code in it.
_HIDDEN = re.compile(
    r"""(?P<f>[fF][rR]?|[rR][fF])?(?P<string>"{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|#[^\n]*""",
    re.DOTALL,
)
_TOP = re.compile(r"^(?=[^\s)\]}])", re.MULTILINE)
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?P<kind>def|class)[ \t]+(?P<name>\w+)")
_GUARD = re.compile(r"if\b[^\n:]*\b__name__\b")
# Dotted names, but no targets of assignments and no names of arguments; and attributes of what is no name.
_CHAIN = re.compile(
    r"""(?:(?<![\w.])[A-Za-z_]\w*|(?<=[)\]}"'\s])\.[ \t]*[A-Za-z_]\w*)(?:[ \t]*\.[ \t]*[A-Za-z_]\w*)*"""
    r"""(?:\(|(?![\w.]|[ \t]*\.|[ \t]*=(?!=)))"""
)
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+)?import\b[ \t]*(?P<names>\([^)]*\)|[^\n;]*)", re.MULTILINE
)
_ALIAS = re.compile(r"([\w.]+|\*)(?:\s+as\s+(\w+))?")
_GETATTR = re.compile(r"""\bgetattr\s*\(\s*([\w.]*)(?:\s*,\s*["'](\w+)["'])?""")
# Code that may run what no name shows: anything of the program, or of this file.
_DYNAMIC = re.compile(
    r"\b(?:import_module|__import__|getmembers|exec_module|runpy|pydoc\.locate|instantiate\s*\()"
    r"|(?<![\w.])(?:eval|exec)\s*\("
)
_ALL_OF_FILE = re.compile(r"\bglobals\s*\(|\bsys\s*\.\s*modules\b|\bfire\.Fire\b")
_SPECIAL = (
    *("import_module", "__import__", "getmembers", "exec", "runpy", "pydoc", "instantiate", "eval"),
    *("globals", "modules", "Fire"),
)
# Decorators that keep a function or class where it is. Others may hand it to a registry.
_PLAIN_DECORATORS = frozenset(
    """abstractclassmethod abstractmethod abstractproperty cache cached_property classmethod contextmanager
custom_gradient dataclass deleter experimental_do_not_retrace final function getter lru_cache njit overload property
register_keras_serializable setter singledispatch staticmethod total_ordering unique vectorize wraps""".split()
)


class Import(NamedTuple):
    """A name that an import statement binds.

    Attributes:
        local: the bound name; ``*`` for a star import.
        module: the imported module, with leading dots if it is relative.
        name: the name in the module; empty for the module itself.
    """

    local: str
    module: str
    name: str


class Unit(NamedTuple):
    """A part of a file that runs, or does not run, as a whole: its top level, a function, a class, a method.

    Attributes:
        name: ``f``, ``C`` or ``C.m``; empty for the top level, ``__main__`` for the block that a script runs.
        spans: the offsets of its pieces.
        imports: what its statements import.
        bases: the dotted names of the bases of a class.
        is_registered: True if a decorator may hand it to other code.
    """

    name: str
    spans: tuple[tuple[int, int], ...]
    imports: tuple[Import, ...]
    bases: tuple[str, ...] = ()
    is_registered: bool = False


class Code(NamedTuple):
    """The names in the code of a part.

    Attributes:
        words: the dotted names, with ``(`` behind those that are called, and a dot before those that follow a call. A
            star stands for any name.
        is_dynamic: True if it may run what no name shows.
    """

    words: frozenset[str]
    is_dynamic: bool


class Outline(NamedTuple):
    """The parts of a file.

    Attributes:
        units: the parts by name.
        starts: the first line of each piece of a part.
        names: the part that each of these pieces belongs to.
    """

    units: dict[str, Unit]
    starts: tuple[int, ...]
    names: tuple[str, ...]

    def unit_at(self, line: int) -> str:
        """Return the name of the part that has a line."""
        return self.names[max(bisect_right(self.starts, line) - 1, 0)] if self.names else MODULE


class _Piece(NamedTuple):
    name: str
    start: int
    end: int
    bases: str = ""
    is_registered: bool = False


def outline_of(raw: bytes, path: str) -> Outline:
    """Return the outline of a file."""
    text, code = _read(raw, path.endswith(NOTEBOOK))
    pieces = list(_pieces(code))
    units: dict[str, Unit] = {}
    for piece in pieces:
        unit = _unit(piece, code)
        known = units.get(piece.name)
        units[piece.name] = unit if known is None else _joined(known, unit)
    starts = [text.count("\n", 0, piece.start) + 1 for piece in pieces]
    return Outline(units, tuple(starts), tuple(piece.name for piece in pieces))


def code_of(raw: bytes, path: str, unit: Unit) -> Code:
    """Return what the code of a part of a file names."""
    text, code = _read(raw, path.endswith(NOTEBOOK))
    words: set[str] = set()
    is_dynamic = False
    for start, end in unit.spans:
        piece = code[start:end]
        words.update(_CHAIN.findall(_IMPORT.sub("", piece) if "import" in piece else piece))
        if "getattr" in piece:
            words.update(f"{owner}.{word or ALL}" for owner, word in _GETATTR.findall(text[start:end]))
        if any(word in piece for word in _SPECIAL):
            words.update([ALL] if _ALL_OF_FILE.search(piece) else [])
            is_dynamic = is_dynamic or _DYNAMIC.search(piece) is not None
    return Code(frozenset(_BLANKS.sub("", word) for word in words), is_dynamic)


@functools.lru_cache(maxsize=64)
def _read(raw: bytes, is_notebook: bool) -> tuple[str, str]:
    """Return the text of a file, and its code: the text with blanks in place of comments and strings."""
    try:
        text = (Notebook(raw).script if is_notebook else raw).decode("utf-8-sig", "replace")
    except SourceError:
        return "", ""
    return text, _HIDDEN.sub(_without, text).replace("\\\r\n", "   ").replace("\\\n", "  ")


def _without(match: re.Match[str]) -> str:
    """Return blanks in place of a comment or a string, and the code of an f-string."""
    whole = match.group()
    if match.group("f"):
        return " " + whole[1:].replace("\n", " ").replace('"', " ").replace("'", " ").replace("\\", " ")
    return " " * len(whole) if match.group("string") is None else '"' + " " * (len(whole) - 2) + '"'


def _pieces(code: str) -> Iterator[_Piece]:
    """Yield the pieces of a file in their order."""
    tops = [match.start() for match in _TOP.finditer(code)]
    first, decorators = -1, ""
    for index, start in enumerate(tops):
        end = tops[index + 1] if index + 1 < len(tops) else len(code)
        if code[start] == "@":
            first = start if first < 0 else first
            decorators += f"{code[start:end]}\n"
            continue
        begin = first if first >= 0 else start
        definition = _DEFINITION.match(code, start)
        if definition is None:
            yield _Piece(GUARD if _GUARD.match(code, start) else MODULE, begin, end)
        elif definition.group("kind") == "def":
            yield _Piece(definition.group("name"), begin, end, "", _may_register(decorators))
        else:
            yield from _of_class(code, definition, begin, end, _may_register(decorators))
        first, decorators = -1, ""


def _of_class(code: str, definition: re.Match[str], start: int, end: int, is_registered: bool) -> Iterator[_Piece]:
    """Yield the pieces of a class: its head, its methods, and the statements between them, of the top level."""
    name = definition.group("name")
    header = _end_of_header(code, definition.end(), end)
    bases = code[definition.end() : header]
    yield _Piece(name, start, header, bases, is_registered)
    line = re.compile(r"^([ \t]+)(?=[^\s#)\]}])", re.MULTILINE).search(code, header, end)
    if line is None:
        if header < end:
            yield _Piece(MODULE, header, end)
        return
    heads = [
        match.start()
        for match in re.compile(rf"^{line.group(1)}(?=[^\s)\]}}])", re.MULTILINE).finditer(code, header, end)
    ]
    if heads and header < heads[0]:
        yield _Piece(MODULE, header, heads[0])
    first, decorators = -1, ""
    for index, head in enumerate(heads):
        last = heads[index + 1] if index + 1 < len(heads) else end
        stripped = head + len(line.group(1))
        if code[stripped] == "@":
            first = head if first < 0 else first
            decorators += f"{code[stripped:last]}\n"
            continue
        method = _DEFINITION.match(code, stripped)
        unit = f"{name}.{method.group('name')}" if method and method.group("kind") == "def" else MODULE
        yield _Piece(unit, first if first >= 0 else head, last, "", unit != MODULE and _may_register(decorators))
        first, decorators = -1, ""


def _end_of_header(code: str, start: int, end: int) -> int:
    """Return the offset behind the colon of a class statement."""
    depth = 0
    for index in range(start, end):
        if code[index] in "([{":
            depth += 1
        elif code[index] in ")]}":
            depth -= 1
        elif code[index] == ":" and not depth:
            return index + 1
    return end


def _may_register(decorators: str) -> bool:
    names = re.findall(r"@[ \t]*([\w.]+)", decorators)
    return any(name.rpartition(".")[2] not in _PLAIN_DECORATORS for name in names)


def _unit(piece: _Piece, code: str) -> Unit:
    imports = tuple(_imports(code[piece.start : piece.end]))
    bases = tuple(_BLANKS.sub("", base).rstrip(CALL) for base in _CHAIN.findall(piece.bases))
    return Unit(piece.name, ((piece.start, piece.end),), imports, bases, piece.is_registered)


def _imports(code: str) -> Iterator[Import]:
    if "import" not in code:
        return
    for statement in _IMPORT.finditer(code):
        module = statement.group("module")
        for name, local in _ALIAS.findall(statement.group("names")):
            if module is not None:
                yield Import(local or name, module, name)
            elif local:
                yield Import(local, name, "")
            else:
                yield Import(name.partition(".")[0], name, "")


def _joined(one: Unit, other: Unit) -> Unit:
    return Unit(
        one.name,
        one.spans + other.spans,
        one.imports + other.imports,
        one.bases + other.bases,
        one.is_registered or other.is_registered,
    )
