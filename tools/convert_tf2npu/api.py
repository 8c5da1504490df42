"""The door of the tool: the names by which another program, such as npu_shim, uses it.

A program reads the configuration of a project, converts its files in memory, reads the results with their edits, and
shows them. Each function imports its part of the tool when it is called: to import this module costs nothing, and a
program that only writes a page loads no rules.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, NamedTuple, Sequence, TextIO

from .engine.results import CHANGE, Diagnostic, FileResult
from .facts.facts import Facts, FileFacts, ObservedRun, Seen, digest, read_facts
from .facts.seen import Block
from .files.errors import UsageError
from .rewrite.watching import Watched
from .syntax.decoding import text_of
from .syntax.edits import Edit, sort_edits

if TYPE_CHECKING:
    from .engine.settings import Settings

__all__ = ["Configuration", "UsageError", "add_rule_arguments", "configuration", "main", "rule_options"]
__all__ += ["Block", "Facts", "FileFacts", "ObservedRun", "Seen", "Watched", "digest", "read_facts"]
__all__ += ["Diagnostic", "Edit", "FileResult", "imported_modules", "sort_edits", "text_of"]
__all__ += ["Deliberate", "deliberate_changes", "deliberate_rules", "names_of_unclear_support"]
__all__ += ["html_page", "html_text", "print_line", "print_results"]


def main(arguments: list[str]) -> int:
    """Run the command ``convert_tf2npu`` with some arguments. Return its exit code."""
    from .main import main as command

    return command(arguments)


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that control the rules to a parser."""
    from .cli import arguments

    arguments.add_rule_arguments(parser)


def rule_options(args: argparse.Namespace) -> list[str]:
    """Return the options of a command line that give the arguments of :func:`add_rule_arguments`."""
    from .cli import arguments

    return arguments.options_for_rule_arguments(args)


class Configuration(NamedTuple):
    """The rules that act in a project, and the files that they leave alone. It can be pickled.

    Attributes:
        settings: which rules act.
        exclude: patterns of files that are not converted.
        folder: the folder that the patterns are relative to.
    """

    settings: Settings
    exclude: tuple[str, ...]
    folder: str

    def excludes(self, path: str) -> bool:
        """Return True if the user excludes a file from conversion."""
        from .files.globs import matches_any_glob

        return matches_any_glob(os.path.relpath(path, self.folder).replace(os.sep, "/"), self.exclude)

    def converter(self, paths: Sequence[str]) -> Callable[[bytes, str], FileResult]:
        """Return the function that converts the files of a project: bytes and path in, result out.

        Args:
            paths: of the files. They are read together, because the type of a name in one file can depend on another
                file. The function holds their syntax trees, so keep it only as long as needed.
        """
        from .engine.converter import Converter, make_project

        return Converter(self.settings, make_project(self.settings, paths, filter(self.excludes, paths))).convert


def configuration(args: argparse.Namespace, folder: str, main: str = "") -> Configuration:
    """Return the configuration from the arguments, then from the nearest pyproject.toml that has one.

    Args:
        args: with the arguments of :func:`add_rule_arguments`.
        folder: of the project.
        main: the path of the entry script, or nothing.
    Raises:
        UsageError: pyproject.toml is invalid.
    """
    from .cli.arguments import rule_settings
    from .cli.config import read_nearest_config

    config = read_nearest_config(folder)
    settings = rule_settings(args, config)._replace(main=main)
    return Configuration(settings, config.exclude or (), os.path.realpath(config.folder or folder))


def imported_modules(raw: bytes, path: str) -> Iterator[str]:
    """Yield the modules that a file may import, with the dots of relative imports before them.

    Args:
        raw: the bytes of the file.
        path: its path. One that ends with ``.ipynb`` is a notebook.
    """
    from .project.import_statements import (
        all_import_statements_in,
        dotted_name,
        text_with_joined_lines as text_of_lines,
    )

    for module, name in all_import_statements_in(text_of_lines(raw, path)):
        yield module
        if name not in ("", "*"):  # may be a module too
            yield dotted_name(module, name)


class Deliberate(NamedTuple):
    """A rule that changes numbers on purpose.

    Attributes:
        code: of the rule.
        change: the numbers, as a clause after the code.
        rounds: True if the rule only rounds differently.
    """

    code: str
    change: str
    rounds: bool


def deliberate_rules() -> dict[str, Deliberate]:
    """Return the rules that change numbers on purpose, by code."""
    from .rules.registry import load_rules

    return {
        rule.code: Deliberate(rule.code, rule.numbers_changed_on_purpose, rule.only_rounds_differently)
        for rule in load_rules()
        if rule.numbers_changed_on_purpose
    }


def deliberate_changes(result: FileResult) -> list[Diagnostic]:
    """Return the rewrites of a file that change numbers on purpose, and the findings that ask for such a change."""
    from .rules.data.last_batch import BY_MASK

    rules = deliberate_rules()
    own = [d for d in result.diagnostics if d.code in rules and not d.message.endswith(BY_MASK)]
    return [d for d in own if d.kind == CHANGE or not rules[d.code].rounds]


def names_of_unclear_support() -> frozenset[str]:
    """Return the functions and raw operators whose support the vendor's lists deny or limit, by their last word."""
    from .tf_api.name_tables import EXCLUDED_IN_2, calls_of_kind

    functions = [name for kind in ("unclear", "finite") for name in calls_of_kind(kind) if ".ragged." not in name]
    operators = [name for name in EXCLUDED_IN_2 if name.startswith("tensorflow.raw_ops.")]
    return frozenset(name.rpartition(".")[2] for name in functions + operators)


def html_text(text: str) -> str:
    """Return a text escaped for HTML, without the characters that HTML forbids."""
    from .report.html.frame import escape_html

    return escape_html(text)


def html_page(
    title: str, heading: str, about: Sequence[str], main: Iterable[str], footer: str, script: str = ""
) -> str:
    """Return a page that needs no network, in the style of the migration report.

    Args:
        title: of the window.
        heading: of the page.
        about: the lines below the heading; the first one names the source.
        main: HTML, in parts.
        footer: the last line.
        script: JavaScript that runs at the end; empty for a page without.
    """
    from .report.html.frame import page_pieces

    return "".join(page_pieces(title, heading, about, ["\n".join(main)], footer, script))


def print_line(stream: TextIO, line: str) -> None:
    """Print a line. Characters that the stream's encoding lacks are printed as escapes."""
    from .report.terminal import Terminal

    Terminal(stream).print_line(line)


def print_results(stream: TextIO, results: Sequence[tuple[str, FileResult]]) -> None:
    """Print each rewrite and each finding of some files, on a terminal with its line of code.

    Args:
        stream: usually standard error.
        results: paths and their results.
    """
    from .report.code_frame import SourceLines
    from .report.terminal import Terminal

    terminal = Terminal(stream)
    terminal.print_results(
        results, with_changes=True, source_lines=SourceLines(results) if terminal.is_terminal else None
    )
