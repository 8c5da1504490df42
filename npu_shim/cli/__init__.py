"""The command ``npu-shim VERB``.

Each module of this package whose name has no leading underscore is a verb. The
first line of its docstring is its help, under the heading ``GROUP``, and ``EXAMPLE``
ends its own help. ``main(arguments)`` runs it and returns the exit code. An
exception of ``main`` ends in one line (``_guard.py``). A verb that sets ``IS_SCRIPT``
becomes the script of the user, whose exceptions go on to Python. Nothing here
imports TensorFlow at import time.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import npu_shim
from npu_shim.cli._guard import PIPE_CLOSED, WrongUsage, close_output, exit_code, run_guarded
from npu_shim.import_hook.tool import ToolMissing

if TYPE_CHECKING:
    from npu_shim.cli._parser import Parser

USAGE_ERROR = 2
GROUPS = MIGRATE, RANKS, NUMBERS, EXPORT, LOOK_UP = (
    "migrate a script",
    "train on several devices",
    "find wrong numbers and slow steps",
    "export a model",
    "look up machine and options",
)


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments, beginning with the verb; by default those of the process.
    Returns:
        The exit code of the verb, or 2 if there is no such verb.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["help"] and arguments[1:2]:
        arguments = [arguments[1], "--help"]
    name = arguments[0] if arguments else "--help"
    if name not in verb_names():
        return run_guarded("npu-shim", lambda: _answer_without_verb(name))
    module = verb(name)
    if not getattr(module, "IS_SCRIPT", False):
        return run_guarded(f"npu-shim {name}", lambda: module.main(arguments[1:]))
    try:
        return module.main(arguments[1:])
    except (WrongUsage, ToolMissing) as error:
        return exit_code(f"npu-shim {name}", error)


def _answer_without_verb(name: str) -> int:
    """Print what the first argument asks for if it is no verb, or that it is wrong."""
    if name in ("-h", "--help", "help"):
        return print_output(_help_text())
    if name == "--version":
        return print_output(f"npu_shim {npu_shim.__version__}")
    print(f"npu-shim: error: {_unknown_verb_text(name)}", file=sys.stderr)
    return USAGE_ERROR


def verb_names() -> list[str]:
    """Return the names of all verbs."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def verb(name: str) -> ModuleType:
    """Return the module of a verb."""
    return importlib.import_module(f"{__name__}.{name}")


def parser_of(verb_name: str, description: str, usage: str | None = None) -> Parser:
    """Return a parser of the arguments of a verb."""
    from npu_shim.cli._parser import Parser

    example = f"example: {verb(verb_name).EXAMPLE}"
    return Parser(prog=f"npu-shim {verb_name}", usage=usage, description=description, epilog=example)


def print_output(text: str, code: int = 0) -> int:
    """Print the output of a verb.

    Args:
        text: the output.
        code: the exit code of the verb.
    Returns:
        ``code``, or 141 if the reader of the output has closed the pipe.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        close_output()
        return PIPE_CLOSED
    return code


def _help_text() -> str:
    modules = {name: verb(name) for name in verb_names()}
    width = max(map(len, modules))
    lines = ["usage: npu-shim VERB ..."]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [
            f"  {name.ljust(width)}  {(module.__doc__ or '').splitlines()[0]}"
            for name, module in modules.items()
            if module.GROUP == group
        ]
    lines += ["", "npu-shim VERB --help explains a verb and gives an example; npu-shim --version names the release."]
    return "\n".join(lines)


def _unknown_verb_text(name: str) -> str:
    from npu_shim.options.near import did_you_mean

    if name.startswith("-"):
        return f"{name!r} comes before a verb. Write npu-shim VERB ...; the verbs are {', '.join(verb_names())}."
    return f"unknown verb {name!r}.{did_you_mean(name, verb_names())} The verbs are {', '.join(verb_names())}."
