"""Run a script as if it had been migrated to the NPU; no file is written.

The script, and what it imports from its own folder, is migrated in memory by
the rules of convert_tf2npu. All else is as with ``python script.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from typing import Any, Sequence

from npu_shim.cli import USAGE_ERROR
from npu_shim.import_hook import children, hook, reach, script, tool
from npu_shim.import_hook.conversions import Conversions, Named
from npu_shim.import_hook.own import Own, own_root

_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Runs a script or a module.

    Args:
        arguments: options, the script or ``-m`` and the module, and the script's own arguments.
    Returns:
        0 when the script has ended by itself; what it raises, SystemExit too, goes on to the caller.
    """
    try:
        tool.load()
    except tool.ToolMissing as error:
        return _error(str(error))
    from convert_tf2npu.cli.config import ConfigError

    made = _parser()
    args = made.parse_args(arguments)
    target = args.module or args.script
    if not target:
        made.error("what shall be run? Give a script, or -m and a module")
    problem = None if args.module else _not_a_script(target[0])
    if problem:
        made.error(problem)
    try:
        files = _enter(target[0], bool(args.module))
        conversions = _convert(files, args)
    except ConfigError as error:
        return _error(str(error))
    except KeyboardInterrupt:
        print("npu-shim run: interrupted", file=sys.stderr)
        return _INTERRUPTED
    finder = hook.install(conversions, not args.no_shape_watch)
    children.follow(finder)
    if args.module:
        script.run_module(target[0], target[1:])
    else:
        script.run_file(target[0], target[1:], finder)
    return 0


def _parser() -> argparse.ArgumentParser:
    from convert_tf2npu.cli.arguments import add_rule_arguments

    made = argparse.ArgumentParser(
        prog="npu-shim run",
        usage="%(prog)s [options] (script.py | -m module) ...",
        allow_abbrev=False,
        description="Runs a script as if convert_tf2npu had migrated it, and all it imports from its own folder. "
        "No file is written. Options of npu-shim run stand before the script, those of the script behind it.",
    )
    made.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    made.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    made.add_argument(
        "-i",
        "--input",
        metavar="DIR",
        help="the folder whose modules are migrated as well; by default "
        "the script's own, or that which holds the packages it lies in",
    )
    made.add_argument("-v", "--verbose", action="store_true", help="list each rewrite and each place that needs you")
    made.add_argument(
        "--no-shape-watch",
        action="store_true",
        help="do not tell shapes that change from step to step, for which a card would compile the graph again",
    )
    add_rule_arguments(made)
    return made


def _error(text: str) -> int:
    print(f"npu-shim run: error: {text}", file=sys.stderr)
    return USAGE_ERROR


def _not_a_script(path: str) -> str | None:
    """Why a path cannot be run, or None."""
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    try:
        with open(file, "rb") as stream:
            compiled = stream.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER
    except OSError as error:
        return f"can't open file {file!r}: {error.strerror}"
    if compiled or path.endswith(".pyc") or zipfile.is_zipfile(file):
        return f"{path} is no source text, which is what can be migrated; give the script, or run it with python"
    return None


def _enter(target: str, is_module: bool) -> list[str]:
    """Puts the folder of a script on the path and finds the file that starts, and the packages around it."""
    if is_module:
        script.prepare_path(os.getcwd())
        return reach.located(target, sys.path)
    if os.path.isdir(target):
        script.prepare_path(script.whole_path(target))
        return [os.path.join(target, "__main__.py")]
    script.prepare_path(os.path.dirname(os.path.realpath(target)))
    return [target]


def _convert(files: Sequence[str], args: argparse.Namespace) -> Conversions:
    """Converts what the script may import, and says in a line what has come of it."""
    from convert_tf2npu.cli.arguments import rule_settings
    from convert_tf2npu.cli.config import find_config

    root = args.input or (own_root(files[-1]) if files else os.getcwd())
    config = find_config(root)
    own = Own(root, config.exclude or (), config.folder)
    paths = reach.reachable(files, own, sys.path)
    said = Said(args.verbose)
    settings = rule_settings(args, config)._replace(main=own.key(files[-1]) or "" if files else "")
    conversions = Conversions(settings._asdict(), own, paths, said.late)
    said.all(conversions.convert_all())
    return conversions


class Said:
    """What the user is told of the conversion, on standard error.

    Args:
        verbose: each rewrite and each place that needs the user, not only how many.
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose

    def all(self, results: Sequence[Named]) -> None:
        """Tells of the files that are read before the script starts."""
        self._list(results)
        rewrites, findings, files = _counts(results)
        parts = (
            ["nothing to rewrite in " + _count(len(results), "file")]
            if not rewrites
            else [f"{_count(rewrites, 'rewrite')} in {_count(files, 'file')}"]
        )
        if findings:
            parts.append(f"{_count(findings, 'place')} {'needs' if findings == 1 else 'need'} you")
        unreadable = sum(1 for _, result in results if result.unreadable)
        if unreadable:
            parts.append(
                f"{_count(unreadable, 'file')} cannot be read and {'is' if unreadable == 1 else 'are'} "
                "imported unchanged"
            )
        more = "" if self._verbose or not (rewrites or findings or unreadable) else "; npu-shim run -v lists them"
        _tell(", ".join(parts) + more)

    def late(self, path: str, result: Any) -> None:
        """Tells of a file that is read only now, when the script imports it."""
        rewrites, findings, _ = _counts([(path, result)])
        if rewrites or findings:
            self._list([(path, result)])
            _tell(
                f"{_count(rewrites, 'rewrite')} in {path}, which is read only now; "
                f"{_count(findings, 'place')} left to you"
            )

    def _list(self, results: Sequence[Named]) -> None:
        if self._verbose:
            _terminal().say_results([(os.path.relpath(path), result) for path, result in results], changes=True)


def _terminal() -> Any:
    from convert_tf2npu.report.terminal import Terminal

    return Terminal(sys.stderr)


def _tell(line: str) -> None:
    _terminal().say("npu-shim run: " + line)


def _counts(results: Sequence[Named]) -> tuple[int, int, int]:
    """Rewrites, findings and changed files."""
    from convert_tf2npu.engine.results import CHANGE, FINDING

    kinds = [said.kind for _, result in results for said in result.diagnostics]
    return kinds.count(CHANGE), kinds.count(FINDING), sum(1 for _, result in results if result.new is not None)


def _count(number: int, noun: str) -> str:
    from convert_tf2npu.report.text import count

    return count(number, noun)
