"""The outline of a file, read from its text: its functions and methods, and the names in the code of each.

To parse every file that a program reaches would take too long.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Callable, Iterator, NamedTuple

from ..files.extensions import NOTEBOOK
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError

MODULE, GUARD = "", "__main__"
ALL = "*"
CALL = "("
_BLANKS = re.compile(r"[ \t]+")
# Strings and comments, as they stand in the text; fixed beginnings make the search fast.
_HIDDEN = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_FORMATTED = frozenset({"f", "fr", "rf"})  # before a string with code in it
_NO_QUOTES = str.maketrans("\n\"'\\", "    ")
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
# Code that may run what no name shows, anything of the program or of this file, by a word in it. Fixed beginnings make
# a search fast.
_DYNAMIC = {
    "import_module": re.compile(r"import_module(?<!\wimport_module)"),
    "__import__": re.compile(r"__import__(?<!\w__import__)"),
    "getmembers": re.compile(r"getmembers(?<!\wgetmembers)"),
    "exec_module": re.compile(r"exec_module(?<!\wexec_module)"),
    "runpy": re.compile(r"runpy(?<!\wrunpy)"),
    "pydoc.locate": re.compile(r"pydoc\.locate(?<!\wpydoc.locate)"),
    "instantiate": re.compile(r"instantiate(?<!\winstantiate)\s*\("),
    "eval": re.compile(r"eval(?<![\w.]eval)\s*\("),
    "exec": re.compile(r"exec(?<![\w.]exec)\s*\("),
}
_ALL_OF_FILE = re.compile(r"\bglobals\s*\(|\bsys\s*\.\s*modules\b|\bfire\.Fire\b")
_ALL_OF_FILE_WORDS = "globals", "modules", "Fire"
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


class ReferencedNames(NamedTuple):
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


def text_of_source(raw: bytes, path: str) -> str:
    """Return the text of a file; nothing for a notebook that cannot be read."""
    try:
        return (Notebook(raw).script if path.endswith(NOTEBOOK) else raw).decode("utf-8-sig", "replace")
    except SourceError:
        return ""


def blank_out_strings(text: str) -> str:
    """Return the code of a text, of the same length: it has blanks in place of comments, strings and joined lines."""
    parts: list[str] = []
    end = 0
    for match in _HIDDEN.finditer(text):
        start, hidden = match.start(), match.group()
        if hidden[0] == "#":
            parts += [text[end:start], " " * len(hidden)]
        else:
            length = _length_of_fstring_prefix(text, start, end)
            if length:  # the code of an f-string stays
                parts += [
                    text[end : start - length],
                    " ",
                    (text[start - length + 1 : start] + hidden).translate(_NO_QUOTES),
                ]
            else:
                parts += [text[end:start], '"', " " * (len(hidden) - 2), '"']
        end = match.end()
    parts.append(text[end:])
    return "".join(parts).replace("\\\r\n", "   ").replace("\\\n", "  ")


def may_be_dynamic(text: str) -> bool:
    """Return True if a part of a file may run what no name shows."""
    return any(word in text and pattern.search(text) for word, pattern in _DYNAMIC.items())


def _length_of_fstring_prefix(text: str, start: int, end: int) -> int:
    """Return the length of the letters before a string, which begins behind ``end``, if they make it an f-string."""
    for length in (2, 1):
        if start - length >= end and text[start - length : start].lower() in _FORMATTED:
            return length
    return 0


def outline_of(text: str, text_without_strings: str) -> Outline:
    """Return the outline of a file, by its text and :func:`blank_out_strings` of it."""
    pieces = list(_pieces(text_without_strings))
    units: dict[str, Unit] = {}
    starts: list[int] = []
    line, counted = 1, 0
    for piece in pieces:
        unit = _unit_of_piece(piece, text_without_strings)
        known = units.get(piece.name)
        units[piece.name] = unit if known is None else _joined_units(known, unit)
        line, counted = line + text.count("\n", counted, piece.start), piece.start
        starts.append(line)
    return Outline(units, tuple(starts), tuple(piece.name for piece in pieces))


def names_in_unit(text_without_strings: str, unit: Unit, read_text: Callable[[], str]) -> ReferencedNames:
    """Return what the code of a part of a file names.

    Args:
        text_without_strings: :func:`blank_out_strings` of the file.
        unit: the part.
        read_text: returns the text of the file.
    """
    words: set[str] = set()
    is_dynamic = False
    for start, end in unit.spans:
        piece = text_without_strings[start:end]
        words.update(_CHAIN.findall(_IMPORT.sub("", piece) if "import" in piece else piece))
        if "getattr" in piece:
            words.update(f"{owner}.{word or ALL}" for owner, word in _GETATTR.findall(read_text()[start:end]))
        if any(word in piece for word in _ALL_OF_FILE_WORDS) and _ALL_OF_FILE.search(piece):
            words.add(ALL)
        is_dynamic = is_dynamic or may_be_dynamic(piece)
    return ReferencedNames(
        frozenset(_BLANKS.sub("", word) if " " in word or "\t" in word else word for word in words), is_dynamic
    )


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
            yield from _pieces_of_class(code, definition, begin, end, _may_register(decorators))
        first, decorators = -1, ""


def _pieces_of_class(
    code: str, definition: re.Match[str], start: int, end: int, is_registered: bool
) -> Iterator[_Piece]:
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


def _unit_of_piece(piece: _Piece, code: str) -> Unit:
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


def _joined_units(one: Unit, other: Unit) -> Unit:
    return Unit(
        one.name,
        one.spans + other.spans,
        one.imports + other.imports,
        one.bases + other.bases,
        one.is_registered or other.is_registered,
    )
