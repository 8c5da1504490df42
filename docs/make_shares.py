"""Measure the migration tool on public TensorFlow 1 code, for the table of docs/public-code.md.

``python docs/make_shares.py`` downloads the packages of public_code.txt with pip (two megabytes; none of them is
imported), converts each in memory without ``-d`` and ``--compat-v1``, counts its TensorFlow calls by result, and writes
the table.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from typing import NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tools")]

from convert_tf2npu.cli.arguments import make_parser, rule_settings  # noqa: E402
from convert_tf2npu.cli.config import Config  # noqa: E402
from convert_tf2npu.engine.results import Calls  # noqa: E402
from convert_tf2npu.engine.run import Run, convert_source  # noqa: E402
from verified import markdown, put  # noqa: E402

PACKAGES = os.path.join(HERE, "public_code.txt")
PAGE = os.path.join(HERE, "public-code.md")
_BEGIN, _END = "<!-- made by docs/make_shares.py -->\n", "<!-- end -->\n"
_COLUMNS = ("package", "Python files", "TensorFlow calls", "fine", "rewritten", "need a manual change")
_TOLERANCE = 1  # point, by which a share in the page may differ


class Row(NamedTuple):
    """The counts of one package, or of all of them."""

    name: str
    files: int
    calls: Calls

    @property
    def shares(self) -> list[float]:
        """The percentages of calls that are fine, rewritten, and need a manual change."""
        return [100 * part / (self.calls.total or 1) for part in self.calls]


def fetch(folder: str) -> dict[str, str]:
    """Download and unpack the packages.

    Args:
        folder: an empty folder for them.

    Returns:
        The folder of each package by its name and version.

    Raises:
        RuntimeError: pip cannot download them, or their hashes differ from public_code.txt.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--no-deps",
            "--prefer-binary",
            "--require-hashes",
            "-r",
            PACKAGES,
            "-d",
            os.path.join(folder, "files"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"pip cannot download the packages of {PACKAGES}. Check the access to PyPI and the hashes. pip printed:\n"
            + done.stdout.decode("utf-8", "replace")[-2000:]
        )
    with open(PACKAGES) as stream:
        names = re.findall(r"^([\w.-]+==[\w.]+)", stream.read(), re.MULTILINE)
    found: dict[str, str] = {}
    for name in names:
        start = name.replace("==", "-").lower().replace("_", "-")
        (archive,) = [
            f for f in os.listdir(os.path.join(folder, "files")) if f.lower().replace("_", "-").startswith(start)
        ]
        found[name] = os.path.join(folder, name.split("==")[0])
        _unpack(os.path.join(folder, "files", archive), found[name])
    return found


def _unpack(archive: str, folder: str) -> None:
    if archive.endswith(".whl"):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        return
    with tarfile.open(archive) as packed_tar:
        if hasattr(tarfile, "data_filter"):
            packed_tar.extractall(folder, filter="data")
        else:
            packed_tar.extractall(folder)


def convert(source: str, arguments: Sequence[str] = ()) -> Run:
    """Convert a package in memory, with further arguments of the command."""
    args = make_parser().parse_args(["-i", source] + list(arguments))
    return convert_source(source, rule_settings(args, Config()))


def rows(runs: dict[str, Run]) -> list[Row]:
    """Return the rows of the table: one for each package, and one for all of them."""
    found = [
        Row(name, len(run.results), Calls.sum(result.calls for _, result in run.results)) for name, run in runs.items()
    ]
    return found + [Row("all", sum(row.files for row in found), Calls.sum(row.calls for row in found))]


def table(measured: list[Row]) -> str:
    """Return the rows as Markdown."""
    lines = []
    for row in measured:
        shares = (f"{number} ({share:.1f} %)" for number, share in zip(row.calls, row.shares))
        lines.append((row.name, row.files, row.calls.total, *shares))
    return markdown(_COLUMNS, lines)


def stale(measured: list[Row]) -> list[str]:
    """Return a message for each row of the page that differs from the measurement."""
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    found: list[str] = []
    for row in measured:
        written = re.search(
            rf"^\| {re.escape(row.name)} \|.*?\|.*?" + r"\| \d+ \(([\d.]+) %\) " * 3, page, re.MULTILINE
        )
        if written is None:
            found.append(f"{row.name} is not in the table")
        elif any(abs(float(said) - share) > _TOLERANCE for said, share in zip(written.groups(), row.shares)):
            shares = " / ".join(f"{share:.1f}" for share in row.shares)
            found.append(f"{row.name}: the page has {' / '.join(written.groups())} %, the measurement {shares} %")
    return found


def main() -> int:
    """Write the table."""
    with tempfile.TemporaryDirectory() as folder:
        measured = rows({name: convert(path) for name, path in fetch(folder).items()})
    put(table(measured), _BEGIN, _END, [PAGE])
    return 0


if __name__ == "__main__":
    sys.exit(main())
