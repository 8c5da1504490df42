"""The parser of the command: one line for an error, the closest name for a wrong one, help in the user's language."""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from typing import Any, Iterable, NoReturn, Sequence

from ..files.message import Message
from ..report.language import ENGLISH, Language

_OF_ARGPARSE = "ambiguous option: {0} could match {1}", "ignored explicit argument {0}"


class Parser(argparse.ArgumentParser):
    """A parser that speaks a language."""

    translate = ENGLISH

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all arguments; an unknown one is an error."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown_arguments_error(rest))
        return parsed, []

    def print_help(self, file: Any = None) -> None:
        """Print the help. argparse's own ignores a full disk."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Exit with one line, without the usage, which --help prints."""
        problem = sys.exc_info()[1]
        if isinstance(problem, argparse.ArgumentError) and problem.argument_name:
            message = Message("argument {0}: {1}", problem.argument_name, _with_template(problem.message))
        else:
            message = _with_template(message)
        self.exit(2, f"{self.prog}: {self.translate('error')}: {self.translate(message)}\n")

    def translate_help(self, translate: Language) -> None:
        """Translate the help."""
        from .wide_help import WideHelp  # only here: English needs none of it

        self.translate = translate
        self.formatter_class = functools.partial(WideHelp, width=help_width(), translate=translate)
        for action in self._actions:
            action.help = translate(action.help or "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = closest_name(str(value), map(str, action.choices))
            choices = ", ".join(map(repr, action.choices))
            raise argparse.ArgumentError(
                action,
                Message("invalid choice: {0}. Did you mean {1}?", repr(value), near)
                if near
                else Message("invalid choice: {0} (choose from {1})", repr(value), choices),
            )

    def _unknown_arguments_error(self, arguments: Sequence[str]) -> str:
        options = [argument.partition("=")[0] for argument in arguments if argument.startswith("-")]
        if not options:
            return Message("unexpected argument {0}. Give one script, notebook or folder", repr(arguments[0]))
        names = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        near = closest_name(options[0].lstrip("-"), names)
        if near:
            return Message("unknown option {0}. Did you mean --{1}?", repr(options[0]), near)
        return Message("unknown option {0}. List the options with --help", repr(options[0]))


def _with_template(text: str) -> str:
    """Return a text of argparse, which fills in some of its templates itself."""
    for template in _OF_ARGPARSE if not isinstance(text, Message) else ():
        filled = re.fullmatch(template.format("(.*)", "(.*)"), text)
        if filled:
            return Message(template, *filled.groups())
    return text


def closest_name(name: str, known: Iterable[str]) -> str:
    """Return the closest of the known names; an empty string if none is close."""
    import difflib  # only for an error: it takes longer to load than the rest of the arguments

    return "".join(difflib.get_close_matches(name, list(known), 1))


def help_width() -> int:
    """Return the width of the help. argparse would load shutil to find it, for each argument."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns) - 2
    try:
        return (os.get_terminal_size(sys.__stdout__.fileno()).columns or 80) - 2  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 78
