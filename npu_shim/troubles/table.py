"""The table of troubles. Each topic is a JSON file beside this one; docs/troubles.md is made from them.

A row has:

* ``id``: stays the same for ever; links and JSON output name it.
* ``symptom``, ``cause``, ``fix``: Markdown without a full stop at the end, in English (``en``) and Chinese (``zh``).
* ``patterns``: regular expressions for one line of a log, none for a trouble without a message. Each begins with four
  characters of plain text, because logs are long, and has no group that captures.
* ``lines``: examples of such lines, one at least for each pattern.
* ``kind``: ``cause`` by default, ``hint`` if a message of plain Python may have other causes, ``waits`` if a rank
  reports so that another one failed, ``consequence`` if the message says nothing about the cause.
* ``source``: the vendor's page, or the kind of public text, that names the trouble.
* ``found_by``: codes of rules and members of FINDERS. ``doctor --log`` and ``launch`` find each row with patterns.
* ``how``: what the library does, or why only documentation helps, ``en`` and ``zh``.
* ``test``: ``path::name`` of the test that shows it; by default the test of the patterns. What a rule finds has a
  script in tests/convert/trouble_examples.py; the test is then that of another finder, if there is one.
"""

from __future__ import annotations

import functools
import json
import pkgutil
from typing import Any, NamedTuple

TOPICS = ("environment", "device", "compilation", "memory", "data", "precision", "graph", "ranks", "serving", "other")
KINDS = CAUSE, HINT, WAITS, CONSEQUENCE = "cause", "hint", "waits", "consequence"  # from what explains most
FINDERS = ("assess", "run", "verify", "doctor", "launch", "library")
PATTERN_TEST = "tests/fast/test_troubles.py::test_patterns_find_the_lines_of_their_row_only"


class Text(NamedTuple):
    """A text in both languages."""

    en: str
    zh: str


class Trouble(NamedTuple):
    """A row of the table."""

    id: str
    topic: str
    symptom: Text
    cause: Text
    fix: Text
    source: str
    patterns: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    kind: str = CAUSE
    found_by: tuple[str, ...] = ()
    how: Text | None = None
    test: str = PATTERN_TEST

    def advice(self) -> str:
        """Return cause and fix as plain text."""
        return f"{self.cause.en}. {self.fix.en}.".replace("`", "")


@functools.lru_cache(maxsize=None)
def topic_titles() -> dict[str, Text]:
    """Return the title of each topic, in the order of the page."""
    return {topic: Text(**_read_topic_file(topic)["title"]) for topic in TOPICS}


@functools.lru_cache(maxsize=None)
def troubles() -> tuple[Trouble, ...]:
    """Return all rows, in the order of the page."""
    return tuple(_trouble_of_row(topic, row) for topic in TOPICS for row in _read_topic_file(topic)["rows"])


def _read_topic_file(topic: str) -> Any:
    return json.loads(pkgutil.get_data(__name__, f"{topic}.json") or b"")


def _trouble_of_row(topic: str, row: dict[str, Any]) -> Trouble:
    texts = {name: Text(**value) for name, value in row.items() if isinstance(value, dict)}
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return Trouble(**{**row, **texts, **lists, "topic": topic})
