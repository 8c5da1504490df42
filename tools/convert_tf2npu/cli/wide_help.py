"""Help in a language whose lines break between any two letters."""

from __future__ import annotations

import argparse
from typing import Any

from ..report.language import Language
from ..report.translation import wrap_text


class WideHelp(argparse.HelpFormatter):
    """The translated help.

    Args:
        prog: the name of the command.
        width: the columns.
        translate: the language.
    """

    def __init__(self, prog: str, width: int, translate: Language) -> None:
        super().__init__(prog, width=width)
        self._translate = translate

    def start_section(self, heading: str | None) -> None:
        super().start_section(self._translate(heading or ""))

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, self._translate(prefix or "usage: "))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap_text(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in wrap_text(self._translate(text), width))
