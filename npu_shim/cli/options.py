"""List the NPU options, or explain some of them.

The output comes from the rows that also check options and generate docs/options.md.
"""

from __future__ import annotations

import argparse
import json
from typing import Sequence

from npu_shim.cli import LOOK_UP, parser_of, print_output
from npu_shim.cli._guard import WrongUsage
from npu_shim.options import page
from npu_shim.options.near import did_you_mean
from npu_shim.options.option import Option
from npu_shim.options.table import TABLE

GROUP = LOOK_UP
EXAMPLE = "npu-shim options precision_mode"


def main(arguments: list[str]) -> int:
    """Print options.

    Args:
        arguments: names, and ``--json``. Without a name, all options are listed.
    Returns:
        0, or 2 if there is no such option.
    """
    args = _parser().parse_args(arguments)
    chosen: list[Option] = []
    for name in args.name:
        rows = options_by_name(name)
        if not rows:
            known = [row.name for row in TABLE] + [row.arg for row in TABLE if row.arg]
            raise WrongUsage(f"unknown option {name!r}.{did_you_mean(name, known)} List all with npu-shim options.")
        chosen += [row for row in rows if row not in chosen]
    if args.json:
        return print_output(
            json.dumps([page.option_record(row) for row in chosen or page.documented_options()], indent=2)
        )
    if chosen:
        return print_output("\n\n".join(page.option_paragraph(row) for row in chosen))
    return print_output("\n".join(option_lines(page.documented_options())))


def options_by_name(name: str) -> list[Option]:
    """Return the rows with a name: of an option, or of the argument that gives it."""
    exact = [row for row in TABLE if row.name == name]
    return exact or [row for row in TABLE if name in (row.arg, row.tf2_path)]


def option_lines(rows: Sequence[Option]) -> list[str]:
    """Return a line for each option: name, type, what it does."""
    width = max(len(row.name) for row in rows)
    return [
        f"{row.name.ljust(width)}  {page.type_text(row).ljust(4)}  {row.doc}{' (deprecated)' if row.deprecated else ''}"
        for row in rows
    ]


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "options",
        "Lists the NPU options. With a name: type, values, default, arguments, conflicting and required "
        "options, and the replacement of a deprecated option.",
    )
    parser.add_argument("name", nargs="*", help="an option, or its argument of NPURunConfig")
    parser.add_argument("--json", action="store_true", help="print everything about each option as JSON")
    return parser
