"""The parser of all verbs: no abbreviations, one line for an error, the closest name for a wrong one."""

from __future__ import annotations

import argparse
from typing import NoReturn, Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.cli._guard import run_guarded
from npu_shim.options.near import did_you_mean

_REQUIRED = "the following arguments are required"  # argparse's own words


class Parser(argparse.ArgumentParser):
    """A parser of the arguments of a verb, or of a part of it."""

    def __init__(self, *args: Value, **kwargs: Value) -> None:
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Value = None, namespace: Value = None) -> Value:
        """Parse all arguments. An unknown one is an error of this parser, also where it is that of a part of a verb."""
        self._given = [] if args is None else list(args)
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown_text(rest))
        return parsed, []

    def print_help(self, file: Value = None) -> None:
        """Print the help, which may be longer than its reader wants."""

        def print_text() -> int:
            print(self.format_help(), end="", file=file)  # argparse's own ignores a full disk
            return 0

        code = run_guarded(self.prog, print_text)
        if code:
            self.exit(code)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line. --help prints the usage."""
        if message.startswith(_REQUIRED):
            options = self._unknown_options(self._given)
            message = self._unknown_text(options) if options else f"{message}. See {self.prog} --help."
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Value) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}.{did_you_mean(str(value), names)} The choices are {', '.join(names)}.",
            )

    def _unknown_text(self, arguments: Sequence[str]) -> str:
        options = self._unknown_options(arguments)
        if not options:
            return f"unexpected argument {arguments[0]!r}. See {self.prog} --help."
        name = options[0].partition("=")[0]
        near = did_you_mean(name, (option for option in self._option_string_actions if option.startswith("--")), "--")
        return f"unknown option {name!r}.{near or f' List the options with {self.prog} --help.'}"

    def _unknown_options(self, arguments: Sequence[str]) -> list[str]:
        """Return the arguments before ``--`` that have the form of an option, and are none."""
        known = self._option_string_actions
        before = arguments[: arguments.index("--")] if "--" in arguments else arguments
        return [word for word in before if word.startswith("--") and word.partition("=")[0] not in known] or [
            word
            for word in before
            if word[:1] == "-" and not word[1:2].isdigit() and word[:2] not in known and word[1:]
        ]
