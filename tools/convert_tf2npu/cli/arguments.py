"""The command's arguments, those of the vendor's tool among them."""

from __future__ import annotations

import argparse
import functools
import os
import sys

from ..engine.settings import Settings
from .config import Config, check_codes, check_jobs


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = argparse.ArgumentParser(
        prog="convert_tf2npu",
        formatter_class=functools.partial(argparse.HelpFormatter, width=_width()),
        description="Migrates TensorFlow training scripts to Ascend NPUs. Without -o and --in-place nothing is written and "
        "a unified diff is printed.",
        epilog="Exit codes: 0 done; 1 --check found something; 2 wrong usage, or files that could not "
        "be read as Python 3 (the rest is converted all the same).",
    )
    made.add_argument(
        "-i", "--input", metavar="SRC", help="the script, notebook or folder to migrate; - for standard input"
    )
    made.add_argument("-o", "--output", metavar="OUT", help="write the migrated copy of SRC here")
    made.add_argument("--in-place", action="store_true", help="change SRC itself")
    made.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when something would change or is left to you"
    )
    made.add_argument(
        "--force", action="store_true", help="replace differing files in OUT; --in-place despite uncommitted changes"
    )
    made.add_argument(
        "-r", "--report", metavar="DIR", help="write the reports here: report.html, .json, .sarif and .txt"
    )
    add_rule_arguments(made)
    made.add_argument("-j", "--jobs", type=_jobs, metavar="N", help="processes; by default as many as pay off")
    made.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="look at every file again; else a run over files of which none has changed since one before "
        "takes its results from $XDG_CACHE_HOME/convert_tf2npu, or ~/.cache/convert_tf2npu",
    )
    made.add_argument(
        "--exclude",
        type=_patterns,
        metavar="GLOBS",
        help="files and folders of SRC that stay as they are, as in tests,*_pb2.py",
    )
    made.add_argument("-v", "--verbose", action="store_true", help="list each rewrite too")
    made.add_argument("--statistics", action="store_true", help="count what was said by rule")
    made.add_argument("--list-rules", action="store_true", help="list the rules")
    made.add_argument("--explain", metavar="CODE", help="explain a rule")
    vendor = made.add_argument_group("of the vendor's tool, so that its command lines work")
    vendor.add_argument(
        "-m",
        "--main",
        metavar="FILE",
        help="the entry script, where --compat-v1 switches the behaviour of TensorFlow 2 off; it is "
        "checked to be there, and not needed otherwise",
    )
    vendor.add_argument(
        "-c",
        "--compat",
        action="store_true",
        help="the scripts use tf.compat.v1 and run on TensorFlow 2; they are understood without it, "
        "and their names stay as they are",
    )
    vendor.add_argument("-l", "--list", metavar="FILE", help="a list of supported APIs; not read, the tool has its own")
    return made


def _width() -> int:
    """The width of help, which argparse would ask for at every argument, and load a library of file operations for it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns) - 2
    try:
        return (os.get_terminal_size(sys.__stdout__.fileno()).columns or 80) - 2  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 78


def add_rule_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments that say what the rules do, wherever a script is migrated: by the command, which
    writes files, or in memory, where it is run."""
    made.add_argument(
        "-d",
        "--distributed",
        choices=("horovod", "tf_strategy"),
        default="",
        help="what trains on many devices and is turned over to the NPU: Horovod, or strategies of tf.distribute",
    )
    made.add_argument(
        "--compat-v1",
        action="store_true",
        default=None,
        help="let scripts of TensorFlow 1 run on TensorFlow 2.x: lift their names to tf.compat.v1, and "
        "switch the behaviour of TensorFlow 2 off in the entry script",
    )
    made.add_argument(
        "--no-compat-v1", dest="compat_v1", action="store_false", default=None, help="not, where pyproject.toml says so"
    )
    made.add_argument("--select", type=_codes, metavar="CODES", help="only these rules, as in NPU101,NPU2")
    made.add_argument("--ignore", type=_codes, metavar="CODES", help="not these rules")


def rule_settings(args: argparse.Namespace, config: Config) -> Settings:
    """What the arguments of :func:`add_rule_arguments` say; where they say nothing, the configuration."""
    select = config.select if args.select is None else args.select
    ignore = config.ignore if args.ignore is None else args.ignore
    compat_v1 = config.compat_v1 if args.compat_v1 is None else args.compat_v1
    main = entry_script(args.main, args.input) if getattr(args, "main", None) else None
    return Settings(select or (), ignore or (), args.distributed, bool(compat_v1), main or "")


def conflict(args: argparse.Namespace) -> str | None:
    """Why the arguments do not go together, or None."""
    if not args.input:
        return "what shall be migrated? Give -i SRC, a script, a notebook or a folder"
    if bool(args.output) + args.in_place + args.check > 1:
        return "-o, --in-place and --check exclude each other; give one of them"
    if args.input == "-":
        for value, name in ((args.output, "-o"), (args.in_place, "--in-place"), (args.report, "-r"), (args.main, "-m")):
            if value:
                return f"{name} does not go with -i -, which writes to standard output"
    return _wrong_main(args.main, args.input) if args.main else None


def entry_script(main: str, source: str) -> str | None:
    """The whole path of the file that ``-m`` names, from here or from the folder that is migrated."""
    places = [main] + ([os.path.join(source, main)] if os.path.isdir(source) else [])
    return next((os.path.abspath(place) for place in places if os.path.isfile(place)), None)


def _wrong_main(main: str, source: str) -> str | None:
    found = entry_script(main, source)
    if found is None:
        return f"-m {main}: there is no such file; give the entry script of {source}"
    inside, path = os.path.realpath(source), os.path.realpath(found)
    if path == inside or path.startswith(os.path.join(inside, "")):
        return None
    return f"-m {main}: this file is no part of {source}"


def notes(args: argparse.Namespace) -> list[str]:
    """What is to be told of flags that the vendor's tool needs and this one does not."""
    found: list[tuple[object, str]] = [
        (
            args.main and not args.compat_v1,
            "-m: what belongs into the entry script is put where training starts, as the code says it",
        ),
        (
            args.compat and not args.compat_v1,
            "-c: scripts on tf.compat.v1 are understood without it; --compat-v1 lifts the others to it",
        ),
        (args.list, "-l: the list is not read; the tool has its own"),
    ]
    return [text for given, text in found if given]


def _jobs(value: str) -> int:
    try:
        return check_jobs(int(value))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is no number of processes; give 1 or more")


def _codes(value: str) -> tuple[str, ...]:
    try:
        return check_codes(value.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error))


def _patterns(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
