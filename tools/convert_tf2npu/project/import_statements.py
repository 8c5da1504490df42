"""The import statements of a file, read from its text: to parse every file only for them would take too long."""

from __future__ import annotations

import re
import sys
from typing import Iterator, NamedTuple

from ..files.extensions import NOTEBOOK
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError
from .source_files import names_frameworks

_IMPORT = re.compile(r"[ \t]*import[ \t]+([^\n#;]+)")
_FROM = re.compile(r"[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)")
# Ways to import without an import statement at the start of a line.
_BY_OTHER_MEANS = ("import_module", "__import__", "LazyLoader", "sys.modules")
_INSIDE_LINE = re.compile(r"[:;](?=[ \t]*(?:from|import)[ \t])")
_QUOTED = re.compile(r'["\']([.\w]+)["\']')
_COMMENT = re.compile(r"#[^\n]*")
_QUOTES = ('"""', "'''")
# A string over several lines. What may have its quotes in it matches before it.
_LONG = re.compile(
    r"""#[^\n]*|("{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3})|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_*]")
MODULE = ""  # in place of the name of a function
_DEFINITION = re.compile(r"(?:async )?(?:def|class) +(\w+)")
_TOP = re.compile(r"^[^\s#)\]}]", re.MULTILINE)  # the beginning of another statement, or a line in a string


class Imports(NamedTuple):
    """The imports of a file.

    Attributes:
        names: the modules, and the names of them, that statements at the start of a line import.
        others: the modules that the file may import in other ways.
        inside: those of ``names`` that only functions and classes import, with the name of each of them.
        of_frameworks: the functions and classes that may import TensorFlow, and the empty string for the module. A name
            of TensorFlow in a string or a comment does not count.
    """

    names: frozenset[tuple[str, str]]
    others: frozenset[str]
    inside: dict[tuple[str, str], set[str]]
    of_frameworks: frozenset[str]


def imports_of(raw: bytes, path: str) -> Imports:
    """Return the imports of a file."""
    text = text_of(raw, path)
    owners: dict[tuple[str, str], set[str]] = {}
    others: set[str] = set()
    by_other_means = any(word in text for word in _BY_OTHER_MEANS)
    named = names_frameworks(raw)
    of_frameworks = {MODULE} if named and by_other_means else set()
    for start, end in _lines_with_imports(text):
        owner = _owner(text, start)
        for imported in _import_at(text, start):
            owners.setdefault(imported, set()).add(owner)
        for module, name in _inside_line(text, start, end):
            others.update((module, dotted_name(module, name)))
            owner = MODULE
        if named and names_frameworks(text[start:end].encode("utf-8", "replace")):
            of_frameworks.add(owner)
    if by_other_means:
        others.update(_QUOTED.findall(text))
    inside = {imported: names for imported, names in owners.items() if MODULE not in names}
    return Imports(frozenset(owners), frozenset(others), inside, frozenset(of_frameworks))


def _owner(text: str, start: int) -> str:
    """Return the name of the function or class at the top level that has a line; empty for the top level."""
    if text[start : start + 1] not in (" ", "\t"):
        return MODULE
    begin = max(text.rfind(word, 0, start) for word in ("\ndef ", "\nclass ", "\nasync def "))
    definition = _DEFINITION.match(text, begin + 1)  # or the start of the text
    return definition.group(1) if definition and not _TOP.search(text, definition.end(), start) else MODULE


def text_of(raw: bytes, path: str) -> str:
    """Return the text of a file with continued lines joined."""
    if path.endswith(NOTEBOOK):
        try:
            raw = Notebook(raw).script
        except SourceError:
            return ""  # reported when the file itself is converted
    text = raw.decode("utf-8-sig", "replace")
    if "\r" in text:  # a fast test
        text = text.replace("\\\r\n", " ")
    return text.replace("\\\n", " ")


def statements_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that a text imports, and the names that it imports from them."""
    for start, _ in _lines_with_imports(text):
        yield from _import_at(text, start)


def all_statements_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the same, and the imports after a colon or a semicolon."""
    for start, end in _lines_with_imports(text):
        yield from _import_at(text, start)
        yield from _inside_line(text, start, end)


def _lines_with_imports(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each line with the word import, without a look at every line.

    Lines inside a string, such as an example in a docstring, are not among them.
    """
    strings: list[tuple[int, int]] | None = None
    counts, counted = [0, 0], 0
    place = text.find("import")
    while place >= 0:
        start = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place) % (len(text) + 1)  # the text's end for the last
        counts = [count + text.count(quotes, counted, start) for count, quotes in zip(counts, _QUOTES)]
        counted = start
        if any(count % 2 for count in counts):
            strings = _long_strings(text) if strings is None else strings
            around = next((last for first, last in strings if first < start and place < last), None)
            if around is not None:
                place = text.find("import", around)
                continue
        yield start, end
        place = text.find("import", end)


def _long_strings(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each string in triple quotes."""
    return [match.span(1) for match in _LONG.finditer(text) if match.group(1)]


def _inside_line(text: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the imports after a colon or a semicolon in a line."""
    for match in _INSIDE_LINE.finditer(text, start, end):
        yield from _import_at(text, match.end())


def _import_at(text: str, start: int) -> Iterator[tuple[str, str]]:
    """Yield what the import statement at an offset imports; nothing if there is none."""
    parts = _FROM.match(text, start)
    if parts:
        for name in _names(parts.group(2)) or [""]:
            yield sys.intern(parts.group(1)), sys.intern(name)  # the files of a project import much the same
        return
    plain = _IMPORT.match(text, start)
    if plain:
        for name in _names(plain.group(1)):
            yield sys.intern(name), ""


def dotted_name(module: str, name: str) -> str:
    """Return the dotted name of a name in a module."""
    return module + "." + name if name and not module.endswith(".") else module + name


def _names(listed: str) -> list[str]:
    if "#" in listed:
        listed = _COMMENT.sub("", listed)
    parts = [part.split(None, 1) for part in listed.strip("() \t").split(",")]
    return [words[0] for words in parts if words and _NAME.match(words[0])]
