"""The arguments of the command, including those of the vendor's tool."""

from __future__ import annotations

import argparse
import functools
import os

from .. import __version__
from ..engine.settings import Settings
from ..facts.facts import read_facts
from ..files.message import Message
from ..project.said_versions import SaidVersions
from ..report.language import ENGLISH, Language
from .config import MOST_JOBS, Config, checked_job_count, checked_rule_codes
from .language_option import NAMES
from .usage import Parser, help_width


def make_parser(translate: Language = ENGLISH) -> argparse.ArgumentParser:
    """Return the parser of the arguments.

    Args:
        translate: the language of the help and the errors.
    """
    command = Parser(
        prog="convert_tf2npu",
        formatter_class=functools.partial(argparse.HelpFormatter, width=help_width()),
        description="Migrate TensorFlow training scripts to Ascend NPUs. Without -o or --in-place the command writes "
        "nothing and prints a unified diff.",
        epilog="Exit codes: 0 done; 1 --check found changes or findings; 2 wrong usage, or some files are not readable "
        "as Python 3 (the others are converted). Example: convert_tf2npu -i src -o migrated -r reports",
    )
    command.add_argument(
        "source", metavar="SRC", nargs="?", help="the script, notebook or folder to migrate; - for standard input"
    )
    command.add_argument("-i", "--input", metavar="SRC", help="the same")
    command.add_argument("-o", "--output", metavar="OUT", help="write the migrated copy of SRC here")
    command.add_argument("--in-place", action="store_true", help="change the files of SRC")
    command.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit with 1 if a file would change or needs a manual change",
    )
    command.add_argument(
        "--force",
        action="store_true",
        help="replace differing files in OUT; with --in-place, ignore uncommitted changes",
    )
    command.add_argument("-r", "--report", metavar="DIR", help="write report.html, .json, .sarif and .txt here")
    add_rule_arguments(command)
    command.add_argument(
        "-j",
        "--jobs",
        type=_parse_jobs,
        metavar="N",
        help="number of processes; default: one per CPU for large folders",
    )
    command.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="do not reuse the results of an earlier run on the same unchanged files; they are kept in "
        "$XDG_CACHE_HOME/convert_tf2npu or ~/.cache/convert_tf2npu",
    )
    command.add_argument(
        "--exclude",
        type=_parse_patterns,
        metavar="GLOBS",
        help="files and folders of SRC to exclude, as in tests,*_pb2.py",
    )
    command.add_argument("-v", "--verbose", action="store_true", help="list each rewrite and each place of a finding")
    command.add_argument(
        "-q", "--quiet", action="store_true", help="print findings and errors only: no counts, notes and progress"
    )
    command.add_argument(
        "--show-source",
        action="store_true",
        default=None,
        help="print the line of code below each finding; by default on a terminal only",
    )
    command.add_argument(
        "--no-show-source", dest="show_source", action="store_false", default=None, help="do not print lines of code"
    )
    command.add_argument("--statistics", action="store_true", help="count findings and rewrites per rule")
    command.add_argument(
        "--language",
        choices=NAMES,
        help="the language of help, messages and reports; default: that of LC_ALL, LC_MESSAGES or LANG",
    )
    command.add_argument("--version", action="version", version=f"convert_tf2npu {__version__}")
    command.add_argument("--list-rules", action="store_true", help="list the rules")
    command.add_argument("--explain", metavar="CODE", help="explain a rule")
    vendor = command.add_argument_group("accepted for compatibility with the vendor's tool")
    vendor.add_argument(
        "-m",
        "--main",
        metavar="FILE",
        help="the entry script, in which --compat-v1 disables TensorFlow 2 behavior; it must exist",
    )
    vendor.add_argument(
        "-c",
        "--compat",
        action="store_true",
        help="the scripts use tf.compat.v1; not needed, the tool recognizes it",
    )
    vendor.add_argument("-l", "--list", metavar="FILE", help="a list of supported APIs; ignored, the tool has its own")
    if translate is not ENGLISH:
        command.translate_help(translate)
    return command


def add_rule_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that control the rules, for this command and for ``npu-shim run``."""
    group = command.add_argument_group("conversion")
    group.add_argument(
        "-d",
        "--distributed",
        choices=("auto", "horovod", "tf_strategy"),
        default="",
        help="convert distributed training. auto: that of each program, and scripts of one device "
        "train on one. horovod: the import of Horovod. tf_strategy: strategies of tf.distribute; "
        "without a strategy, make the script of one device train on all ranks, which average gradients",
    )
    group.add_argument(
        "--compat-v1",
        action="store_true",
        default=None,
        help="make TensorFlow 1 scripts run on TensorFlow 2.x: lift their names to tf.compat.v1 and disable "
        "TensorFlow 2 behavior in the entry script",
    )
    group.add_argument(
        "--no-compat-v1",
        dest="compat_v1",
        action="store_false",
        default=None,
        help="override compat-v1 in pyproject.toml",
    )
    group.add_argument(
        "--tf",
        choices=("1", "2"),
        default=None,
        help="the TensorFlow that the programs speak, where their source does not show it",
    )
    group.add_argument(
        "--facts", metavar="FILE", help="decide by what npu-shim observe saw where the source does not show it"
    )
    group.add_argument(
        "--no-facts-for",
        type=_parse_codes_or_places,
        metavar="CODES",
        help="these rules do not use the facts, as in NPU231,NPU10; NPU231:train.py:12 names one line",
    )
    group.add_argument("--select", type=_parse_codes, metavar="CODES", help="run only these rules, as in NPU101,NPU2")
    group.add_argument("--ignore", type=_parse_codes, metavar="CODES", help="do not run these rules")


def options_for_rule_arguments(args: argparse.Namespace) -> list[str]:
    """Return the options on a command line that give the arguments of :func:`add_rule_arguments`."""
    options = [f"--distributed={args.distributed}"] if args.distributed else []
    if args.compat_v1 is not None:
        options.append("--compat-v1" if args.compat_v1 else "--no-compat-v1")
    options += [f"--tf={args.tf}"] if args.tf else []
    options += [f"--facts={os.path.abspath(args.facts)}"] if args.facts else []
    for name in ("no_facts_for", "select", "ignore"):
        codes = getattr(args, name)
        options += [f"--{name.replace('_', '-')}={','.join(codes)}"] if codes else []
    return options


def rule_settings(args: argparse.Namespace, config: Config) -> Settings:
    """Return the settings from the arguments of :func:`add_rule_arguments`, then from the configuration."""
    select = config.select if args.select is None else args.select
    ignore = config.ignore if args.ignore is None else args.ignore
    compat_v1 = config.compat_v1 if args.compat_v1 is None else args.compat_v1
    main = entry_script(args.main, args.input) if getattr(args, "main", None) else None
    tf = config.tf if args.tf is None else args.tf
    files = SaidVersions(os.path.realpath(config.folder), config.tf_1 or (), config.tf_2 or ())
    said = files if args.tf is None and (files.one or files.two) else SaidVersions()
    facts = read_facts(args.facts) if args.facts else None
    return Settings(
        select or (),
        ignore or (),
        args.distributed,
        bool(compat_v1),
        main or "",
        tf or "",
        said,
        facts,
        args.no_facts_for or (),
    )


def reason_of_conflict(args: argparse.Namespace) -> str | None:
    """Return the reason why the arguments cannot be combined, or None."""
    if args.source and args.input:
        return Message(
            "two inputs, {0} and -i {1}. Give one, or the folder that contains both", args.source, args.input
        )
    if args.quiet and args.verbose:
        return "-q and -v exclude each other. Give one of them"
    source = args.source or args.input
    if not source:
        return "missing input. Give a script, a notebook or a folder"
    if bool(args.output) + args.in_place + args.check > 1:
        return "-o, --in-place and --check exclude each other. Give one of them"
    if source == "-":
        for value, name in ((args.output, "-o"), (args.in_place, "--in-place"), (args.report, "-r"), (args.main, "-m")):
            if value:
                return Message("{0} cannot be combined with -i -, which writes to standard output", name)
    return _error_in_main(args.main, source) if args.main else None


def entry_script(main: str, source: str) -> str | None:
    """Return the absolute path of the ``-m`` file, relative to this folder or to the source."""
    places = [main] + ([os.path.join(source, main)] if os.path.isdir(source) else [])
    return next((os.path.abspath(place) for place in places if os.path.isfile(place)), None)


def _error_in_main(main: str, source: str) -> str | None:
    script = entry_script(main, source)
    if script is None:
        return Message("file not found: {0}. Give the entry script of {1} to -m", main, source)
    inside, path = os.path.realpath(source), os.path.realpath(script)
    if path == inside or path.startswith(os.path.join(inside, "")):
        return None
    return Message("-m {0}: the file is not in {1}", main, source)


def notes_on_vendor_flags(args: argparse.Namespace) -> list[str]:
    """Return notes on flags that the vendor's tool needs and this one does not."""
    candidates: list[tuple[object, str]] = [
        (
            args.main and not args.compat_v1,
            "-m: not needed without --compat-v1; the tool finds where training starts",
        ),
        (
            args.compat and not args.compat_v1,
            "-c: not needed, the tool recognizes tf.compat.v1. Use --compat-v1 to lift other scripts",
        ),
        (args.list, "-l: the list is ignored; the tool has its own"),
    ]
    return [text for given, text in candidates if given]


def _parse_jobs(value: str) -> int:
    try:
        return checked_job_count(int(value))
    except ValueError:
        raise argparse.ArgumentTypeError(
            Message("{0} is not a number of processes. Give 1 to {1}", repr(value), MOST_JOBS)
        )


def _parse_codes(value: str) -> tuple[str, ...]:
    try:
        return checked_rule_codes(value.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error))


def _parse_codes_or_places(value: str) -> tuple[str, ...]:
    entries = [entry.partition(":") for entry in value.split(",")]
    codes = _parse_codes(",".join(code for code, _, _ in entries))
    return tuple(code + colon + place for code, (_, colon, place) in zip(codes, entries))


def _parse_patterns(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
