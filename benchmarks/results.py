"""Functions of all benchmarks: the machine they name, and their places in RESULTS.md and results.json."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pathlib
import platform
from typing import Any, Callable, Sequence

RESULTS = pathlib.Path(__file__).resolve().parent / "RESULTS.md"
_NUMBERS = RESULTS.with_name("results.json")
_NAMES = {"numpy": "NumPy", "tensorflow": "TensorFlow"}


def machine(packages: Sequence[str] = ("numpy", "tensorflow")) -> str:
    """Return the machine, its load, Python and the installed packages that a benchmark uses."""
    versions = ["Python " + platform.python_version()]
    versions += [
        f"{_NAMES.get(name, name)} {importlib.import_module(name).__version__}"
        for name in packages
        if importlib.util.find_spec(name)
    ]
    load = f"{os.cpu_count() or 1} processors, load average {os.getloadavg()[0]:.0f}"
    return f"{platform.machine()}, {load}; {', '.join(versions)}"


def write(name: str, text: str) -> None:
    """Put what a benchmark measured into RESULTS.md.

    Args:
        name: of the benchmark, as the markers of its place there say it.
        text: in Markdown.
    """
    begin, end = (
        "<!-- {}: made by benchmarks/{}.py -->\n".format(name.replace("_", " "), name),
        "<!-- end of {} -->\n".format(name.replace("_", " ")),
    )
    before, rest = RESULTS.read_text(encoding="utf-8").split(begin)
    RESULTS.write_text(before + begin + text + end + rest.split(end)[1], encoding="utf-8")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [list(head), ["---"] * len(head)] + [list(row) for row in rows]
    return "\n".join("| {} |".format(" | ".join(line)) for line in lines) + "\n"


def report(name: str, table: str, rows: list[dict[str, Any]], keep: bool) -> None:
    """Prints what a benchmark measured, and keeps it where that is wanted.

    Args:
        name: of the benchmark.
        table: for people.
        rows: the same for programs, which results.json has under the name.
        keep: whether to put both into the files, in place of what was measured before.
    """
    text = f"{machine()}\n\n{table}"
    print(text)
    if not keep:
        return
    write(name, text)
    known = _known()
    known[name] = {"machine": machine(), "rows": rows}
    _NUMBERS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def kept(name: str) -> list[dict[str, Any]]:
    """The rows of a benchmark that results.json has."""
    return _known().get(name, {}).get("rows", [])


def beside_others(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a benchmark with those that results.json has of other TensorFlows, in the order of their versions."""
    measured = {row["TensorFlow"] for row in rows}
    others = [row for row in kept(name) if row["TensorFlow"] not in measured]
    return sorted(others + rows, key=lambda row: [int(part) for part in row["TensorFlow"].split(".")])


def run(
    name: str,
    doc: str,
    argv: Sequence[str],
    quick: str,
    measure: Callable[[bool], list[dict[str, Any]]],
    table: Callable[[list[dict[str, Any]]], str],
) -> int:
    """The main() of a benchmark that is run with one TensorFlow after the other.

    Args:
        name: of the benchmark.
        doc: what it measures, in the first line.
        argv: the arguments of the command.
        quick: what is measured with --quick, for --help.
        measure: the rows of this TensorFlow; whether they shall be those of --quick.
        table: of rows, for people.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help=quick)
    args = parser.parse_args(argv)
    made = measure(args.quick)
    rows = beside_others(name, made) if args.write else made
    report(name, table(rows), rows, args.write)
    return 0


def _known() -> dict[str, Any]:
    return json.loads(_NUMBERS.read_text(encoding="utf-8")) if _NUMBERS.exists() else {}
