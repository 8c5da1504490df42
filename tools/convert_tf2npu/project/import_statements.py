"""The import statements of a file, read from its text: to parse every file only for them would take too long."""

from __future__ import annotations

import re
import sys
from typing import Iterator, NamedTuple

from ..files.extensions import NOTEBOOK
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError
from .source_files import mentions_frameworks

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


class Imports(NamedTuple):
    """The imports of a file.

    Attributes:
        names: the modules, and the names of them, that statements at the start of a line import.
        others: the modules that the file may import in other ways.
        of_frameworks: True if TensorFlow may be among them. A name of TensorFlow in a string or a comment does not
        count.
    """

    names: frozenset[tuple[str, str]]
    others: frozenset[str]
    of_frameworks: bool


def imports_of(raw: bytes, path: str) -> Imports:
    """Return the imports of a file."""
    text = text_with_joined_lines(raw, path)
    names: set[tuple[str, str]] = set()
    others: set[str] = set()
    lines = list(_lines_with_imports(text))
    for start, end in lines:
        names.update(_import_at(text, start))
        for module, name in _imports_inside_line(text, start, end):
            others.update((module, dotted_name(module, name)))
    by_other_means = any(word in text for word in _BY_OTHER_MEANS)
    if by_other_means:
        others.update(_QUOTED.findall(text))
    of_frameworks = mentions_frameworks(raw) and (
        by_other_means or any(mentions_frameworks(text[start:end].encode("utf-8", "replace")) for start, end in lines)
    )
    return Imports(frozenset(names), frozenset(others), of_frameworks)


def text_with_joined_lines(raw: bytes, path: str) -> str:
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


def import_statements_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that a text imports, and the names that it imports from them."""
    for start, _ in _lines_with_imports(text):
        yield from _import_at(text, start)


def all_import_statements_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the same, and the imports after a colon or a semicolon."""
    for start, end in _lines_with_imports(text):
        yield from _import_at(text, start)
        yield from _imports_inside_line(text, start, end)


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
            strings = _spans_of_triple_quoted_strings(text) if strings is None else strings
            around = next((last for first, last in strings if first < start and place < last), None)
            if around is not None:
                place = text.find("import", around)
                continue
        yield start, end
        place = text.find("import", end)


def _spans_of_triple_quoted_strings(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each string in triple quotes."""
    return [match.span(1) for match in _LONG.finditer(text) if match.group(1)]


def _imports_inside_line(text: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the imports after a colon or a semicolon in a line."""
    for match in _INSIDE_LINE.finditer(text, start, end):
        yield from _import_at(text, match.end())


def _import_at(text: str, start: int) -> Iterator[tuple[str, str]]:
    """Yield what the import statement at an offset imports; nothing if there is none."""
    parts = _FROM.match(text, start)
    if parts:
        for name in _split_imported_names(parts.group(2)) or [""]:
            yield sys.intern(parts.group(1)), sys.intern(name)  # the files of a project import much the same
        return
    plain = _IMPORT.match(text, start)
    if plain:
        for name in _split_imported_names(plain.group(1)):
            yield sys.intern(name), ""


def dotted_name(module: str, name: str) -> str:
    """Return the dotted name of a name in a module."""
    return module + "." + name if name and not module.endswith(".") else module + name


def _split_imported_names(listed: str) -> list[str]:
    if "#" in listed:
        listed = _COMMENT.sub("", listed)
    parts = [part.split(None, 1) for part in listed.strip("() \t").split(",")]
    return [words[0] for words in parts if words and _NAME.match(words[0])]
