"""A language other than English: the texts and the templates of messages are the keys of a catalogue, ``zh.po``."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from typing import Mapping

from ..files.message import Message
from .language import Language

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PIECE = re.compile(r"\s+|[!-~]+[\u3001\u3002\uff01-\uff1f]*|.[\u3001\u3002\uff01-\uff1f]*", re.DOTALL)


class Translation(Language):
    """A language with a catalogue.

    Args:
        tag: the language as HTML names it.
        entries: the translations by key.
    """

    def __init__(self, tag: str, entries: Mapping[str, str]) -> None:
        self.tag = tag
        self._entries = entries

    def __call__(self, text: str) -> str:
        if not isinstance(text, Message):
            return self._entries.get(text, text)
        template, entries = text.template, self._entries
        if template not in entries:  # at the start of a sentence
            template = template[:1].lower() + template[1:]
        template = entries.get(template, text.template)
        return template.format(*map(self._translated_value, text.values)) if text.values else template

    def _translated_value(self, value: str) -> str:
        # A value of one word is a name of the script, and no English, unless it is a message.
        return self(value) if isinstance(value, Message) or " " in value else value


def read_catalogue(name: str) -> dict[str, str]:
    """Return the translations of a language by key, from a PO file whose strings take one line each."""
    with open(os.path.join(_FOLDER, name + ".po"), encoding="utf-8") as stream:
        texts = [json.loads(line.partition(" ")[2]) for line in stream if line.startswith("msg")]
    entries = dict(zip(texts[::2], texts[1::2]))
    del entries[""]  # the header
    return entries


def display_width(text: str) -> int:
    """Return the columns of a text on a terminal, on which a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap_text(text: str, columns: int) -> list[str]:
    """Return a text in lines of a number of columns. No line begins with Chinese punctuation."""
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if display_width(lines[-1] + piece.rstrip()) > columns and lines[-1]:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]
