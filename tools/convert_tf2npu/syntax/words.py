"""Find words in a text as Python reads it: a fast test before a file is walked."""

from __future__ import annotations

import functools
import re
from typing import AnyStr, Iterable, Pattern

# What may stand on both sides of a dot or a parenthesis: blanks, joined lines and comments.
_TRIVIA = r"(?:[\s\\]|#[^\r\n]*[\r\n])*"
_OF_NAMES = frozenset(bytes([number]) for number in range(128) if chr(number).isalnum() or chr(number) == "_")


def spread_word_pattern(word: str) -> str:
    """Return a pattern for a word whose parts may stand apart, as in ``model . fit (``."""
    parts = (re.escape(part) if part not in ".(" else _TRIVIA + re.escape(part) + _TRIVIA for part in _parts(word))
    return "".join(parts)[len(_TRIVIA) if word.startswith(".") else 0 :]


def has_words(text: AnyStr, words: Iterable[AnyStr]) -> bool:
    """Return True if a text has one of some words, of names, dots and opening parentheses."""
    near = tuple(word for word, part in _words_with_longest_part(tuple(words)) if part in text)
    return any(word in text for word in near) or bool(near) and _pattern_of_spread_words(near).search(text) is not None


def has_name(raw: bytes, name: str) -> bool:
    """Return True if a file has a name as a whole word."""
    literal = name.encode("utf-8")
    at = raw.find(literal)
    while at >= 0:
        end = at + len(literal)
        if raw[at - 1 : at] not in _OF_NAMES and raw[end : end + 1] not in _OF_NAMES:
            return True
        at = raw.find(literal, end)
    return False


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"([.(])", word) if part]


@functools.lru_cache(maxsize=None)
def _words_with_longest_part(words: tuple[AnyStr, ...]) -> tuple[tuple[AnyStr, AnyStr], ...]:
    return tuple((word, _longest_part(word)) for word in words)


def _longest_part(word: AnyStr) -> AnyStr:
    longest = max(_parts(word if isinstance(word, str) else word.decode("ascii")), key=len)
    return longest if isinstance(word, str) else longest.encode("ascii")


@functools.lru_cache(maxsize=None)
def _pattern_of_spread_words(words: tuple[AnyStr, ...]) -> Pattern[AnyStr]:
    pattern = "|".join(spread_word_pattern(word if isinstance(word, str) else word.decode("ascii")) for word in words)
    return re.compile(pattern if isinstance(words[0], str) else pattern.encode("ascii"))
