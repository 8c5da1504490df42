"""List the options of the NPU, or tell all about some of them.

The same rows check options when they are given and make docs/options.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Sequence

from npu_shim.cli import USAGE_ERROR, show
from npu_shim.options import page
from npu_shim.options.near import closest
from npu_shim.options.option import Option
from npu_shim.options.table import TABLE


def main(arguments: list[str]) -> int:
    """Prints options.

    Args:
        arguments: names, and ``--json``; without a name all options are listed.
    Returns:
        0, or 2 where there is no such option.
    """
    args = _parser().parse_args(arguments)
    found: list[Option] = []
    for name in args.name:
        rows = named(name)
        if not rows:
            known = [row.name for row in TABLE] + [row.arg for row in TABLE if row.arg]
            print(
                f"npu-shim options: error: there is no option {name!r}.{closest(name, known)} "
                "npu-shim options lists all.",
                file=sys.stderr,
            )
            return USAGE_ERROR
        found += [row for row in rows if row not in found]
    if args.json:
        return show(json.dumps([page.record(row) for row in found or page.described()], indent=2))
    if found:
        return show("\n\n".join(page.paragraph(row) for row in found))
    return show("\n".join(listed(page.described())))


def named(name: str) -> list[Option]:
    """The rows that go by a name: of an option, or of the argument by which it is given."""
    exact = [row for row in TABLE if row.name == name]
    return exact or [row for row in TABLE if name in (row.arg, row.tf2_path)]


def listed(rows: Sequence[Option]) -> list[str]:
    """A line for each option: name, type, what it does."""
    width = max(len(row.name) for row in rows)
    return [
        f"{row.name.ljust(width)}  {page.kind(row).ljust(4)}  {row.doc}{' (deprecated)' if row.deprecated else ''}"
        for row in rows
    ]


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="npu-shim options",
        allow_abbrev=False,
        description="Lists the options of the NPU. With a name: its type, values, default, where it is given, what it "
        "does not go with or needs, and what replaces it where it is deprecated.",
    )
    made.add_argument("name", nargs="*", help="an option, or the argument of NPURunConfig that gives it")
    made.add_argument("--json", action="store_true", help="as JSON, with everything that is known of each")
    return made
