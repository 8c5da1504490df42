"""The language of messages, help and reports that people read.

The code writes English. What prints for people calls a :class:`Language`: English returns the text as it is, another
one its translation (``translation.py``). So rules, results, the cache, JSON and SARIF know nothing of languages but the
templates of messages, and a run in English reads no catalogue.
"""

from __future__ import annotations


class Language:
    """English, or a language with a catalogue.

    Attributes:
        tag: the language as HTML names it.
    """

    tag = "en"

    def __call__(self, text: str) -> str:
        """Return a text or a message in this language; as it is if there is no translation."""
        return text


ENGLISH = Language()
