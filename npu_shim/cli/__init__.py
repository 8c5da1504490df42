"""The command ``npu-shim VERB``.

Each module of this package whose name has no leading underscore is a verb. The
first line of its docstring is its help. ``main(arguments)`` runs it and returns
the exit code. Nothing here imports TensorFlow at import time.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import npu_shim

if TYPE_CHECKING:
    import argparse

USAGE_ERROR = 2


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments, beginning with the verb; by default those of the process.
    Returns:
        The exit code of the verb, or 2 if there is no such verb.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return show(_help())
    if arguments[0] == "--version":
        print(f"npu_shim {npu_shim.__version__}")
        return 0
    if arguments[0] not in verb_names():
        print(f"npu-shim: error: {_unknown(arguments[0])}", file=sys.stderr)
        return USAGE_ERROR
    return verb(arguments[0]).main(arguments[1:])


def verb_names() -> list[str]:
    """Return the names of all verbs."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))


def verb(name: str) -> ModuleType:
    """Return the module of a verb."""
    return importlib.import_module(f"{__name__}.{name}")


def parser(verb: str, description: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Return a parser of the arguments of a verb, which takes no abbreviations."""
    import argparse

    return argparse.ArgumentParser(prog=f"npu-shim {verb}", usage=usage, allow_abbrev=False, description=description)


def above_zero(text: str, what: str = "a positive number") -> float:
    """Return a finite number above 0 that an argument holds, or raise an error that names it."""
    import argparse

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be {what}")
    return value


def show(text: str, code: int = 0) -> int:
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _help() -> str:
    titles: dict[str, str] = {name: (verb(name).__doc__ or "").split("\n")[0] for name in verb_names()}
    width = max(len(name) for name in titles)
    lines = ["usage: npu-shim VERB ...", ""]
    lines += [f"  {name.ljust(width)}  {title}" for name, title in titles.items()]
    return "\n".join(lines + ["", "npu-shim VERB --help explains a verb; npu-shim --version names the release."])


def _unknown(name: str) -> str:
    from npu_shim.options.near import closest

    if name.startswith("-"):
        return f"{name!r} comes before a verb. Write npu-shim VERB ...; the verbs are {', '.join(verb_names())}."
    return f"unknown verb {name!r}.{closest(name, verb_names())} The verbs are {', '.join(verb_names())}."
