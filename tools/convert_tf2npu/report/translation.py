"""A language other than English: texts are translated by a catalogue beside the rules, such as ``rules/zh.po``.

The keys of a catalogue are the English texts of the source, with ``{0}``, ``{1}`` for the values in them. A finished
message is matched with the keys.
"""

from __future__ import annotations

import functools
import json
import os
import re
import unicodedata
from typing import Mapping, Match, Pattern, Sequence

from .language import Language

_RULES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rules")
_VALUE = re.compile(r"\{(\d+)\}")
_FIELD = re.compile(r"\{\{|\}\}|\{(\d+)\??\}")  # of a translation; {0?} is a value that may be one word of English
_PIECE = re.compile(r"\s+|[!-~]+[\u3001\u3002\uff01-\uff1f]*|.[\u3001\u3002\uff01-\uff1f]*", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_LEAST = 4  # letters of a key that a value is matched with; shorter keys fit too much


class Translation(Language):
    """A language with a catalogue.

    Args:
        tag: the language as HTML names it.
        entries: the translations by key.
    """

    def __init__(self, tag: str, entries: Mapping[str, str]) -> None:
        self.tag = tag
        self._entries = entries
        # A message is matched with the keys that have most text first: a general key must not hide another one.
        self._keys = sorted((key for key in entries if "{0}" in key), key=_letters, reverse=True)
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._translated(text, 0)
        return found

    def _translated(self, text: str, least: int) -> str:
        if text in self._entries:
            return self._entries[text]
        for key in self._keys:
            if _letters(key) < least:
                break
            match = _longest(key) in text and _pattern(key).fullmatch(text)
            if match and all(map(_is_whole, match.groups())):
                return self._filled(self._entries[key], match.groups())
        lower = text[:1].lower() + text[1:]
        found = self._translated(lower, least) if lower != text else text
        return text if found == lower else found

    def _filled(self, template: str, values: Sequence[str]) -> str:
        def filled(found: Match[str]) -> str:
            number = found.group(1)
            if not number:
                return found.group()[0]  # {{ or }}
            value = values[int(number)]
            # A value of one word is a name of the script, and no English, unless the template says otherwise.
            return self._translated(value, _LEAST) if " " in value or "?" in found.group() else value

        return _FIELD.sub(filled, template)


def read_catalogue(name: str) -> dict[str, str]:
    """Return the translations of a language by key, from a PO file whose strings take one line each."""
    with open(os.path.join(_RULES, name + ".po"), encoding="utf-8") as stream:
        texts = [json.loads(line.partition(" ")[2]) for line in stream if line.startswith("msg")]
    entries = dict(zip(texts[::2], texts[1::2]))
    del entries[""]  # the header
    return entries


def width(text: str) -> int:
    """Return the columns of a text on a terminal, on which a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrapped(text: str, columns: int) -> list[str]:
    """Return a text in lines of a number of columns. No line begins with Chinese punctuation."""
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if width(lines[-1] + piece.rstrip()) > columns and lines[-1]:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


@functools.lru_cache(maxsize=None)
def _parts(key: str) -> tuple[str, ...]:
    """Return the text between the values of a key."""
    return tuple(part.replace("{{", "{").replace("}}", "}") for part in _VALUE.split(key)[::2])


@functools.lru_cache(maxsize=None)
def _letters(key: str) -> int:
    return sum(map(len, _parts(key)))


@functools.lru_cache(maxsize=None)
def _longest(key: str) -> str:
    return max(_parts(key), key=len)


@functools.lru_cache(maxsize=None)
def _pattern(key: str) -> Pattern[str]:
    return re.compile("(.*?)".join(map(re.escape, _parts(key))), re.DOTALL)


def _is_whole(value: str) -> bool:
    """Return True if each bracket of a value is closed in it: otherwise the key was matched at a wrong place."""
    depth = 0
    for letter in _QUOTED.sub("", value):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
    return not depth
