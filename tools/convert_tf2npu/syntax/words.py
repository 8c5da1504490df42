"""Find words in a text as Python reads it: a fast test before a file is walked."""

from __future__ import annotations

import functools
import re
from typing import AnyStr, Iterable, Pattern

# What may stand on both sides of a dot or a parenthesis: blanks, joined lines and comments.
_TRIVIA = r"(?:[\s\\]|#[^\r\n]*[\r\n])*"
_WITHOUT_SIGNS = bytes(n if n > 127 or chr(n).isalnum() or chr(n) == "_" else ord(" ") for n in range(256))


def spread_word_pattern(word: str) -> str:
    """Return a pattern for a word whose parts may stand apart, as in ``model . fit (``."""
    parts = (re.escape(part) if part not in ".(" else _TRIVIA + re.escape(part) + _TRIVIA for part in _parts(word))
    return "".join(parts)[len(_TRIVIA) if word.startswith(".") else 0 :]


def has_words(text: AnyStr, words: Iterable[AnyStr]) -> bool:
    """Return True if a text has one of some words, of names, dots and opening parentheses."""
    near = tuple(word for word, part in _words_with_longest_part(tuple(words)) if part in text)
    return any(word in text for word in near) or bool(near) and _pattern_of_spread_words(near).search(text) is not None


def words_in(raw: bytes) -> frozenset[bytes]:
    """Return the words of a file as those of names, also in strings and comments.

    To look for several words in them takes less time than to search the file for each.
    """
    return frozenset(raw.translate(_WITHOUT_SIGNS).split())


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
