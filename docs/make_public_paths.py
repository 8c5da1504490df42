"""Take public repositories through assess, convert, verify and two ranks, for the last table of docs/public-code.md.

``python docs/make_public_paths.py`` clones the repositories of public_paths.py that run with the TensorFlow of this
Python, makes their scripts small, runs the commands and writes their rows; the other rows stay. ``--sources FOLDER``
takes checkouts from ``FOLDER/NAME`` in place of clones. The scripts need these packages besides: networkx, imageio and
Pillow (TensorFlow 1.15), tensorflow_addons (2.6, 2.15) and click (2.15).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from make_paths import ROOT, number, read, run, verify  # noqa: E402
from public_paths import REPOSITORIES, Edit, Repository  # noqa: E402

if TYPE_CHECKING:
    from acceptance import Script

PAGE = os.path.join(HERE, "public-code.md")
_BEGIN, _END = "<!-- made by docs/make_public_paths.py -->\n", "<!-- end -->\n"
TOOL = os.path.join(ROOT, "tools/convert_tf2npu/main.py")
_COLUMNS = (
    "repository, script",
    "kind",
    "TensorFlow",
    "operators, not on the device",
    "changes, findings",
    "right / needless / wrong / missed",
    "verify",
    "two ranks",
    "seconds: assess, convert, verify, two ranks",
    "ms per step: original, migrated",
)


class Row(NamedTuple):
    """The measurements of a repository.

    Attributes:
        operators, problems: nodes of the training steps, and what would not run on the device.
        rewrites, findings: of the migration tool.
        steps: that verify compared.
        verdict, ranks_verdict: of verify, with one process and with two ranks; None without a comparison.
        difference, ranks_difference: the largest relative difference of a loss.
        seconds: of assess, of the tool, of verify and of verify with two ranks.
        step_seconds: of a step of the original and of the migrated script, from verify with one process.
    """

    operators: int
    problems: int
    rewrites: int
    findings: int
    steps: int
    verdict: str
    difference: float
    ranks_verdict: str | None
    ranks_difference: float
    seconds: Sequence[float]
    step_seconds: tuple[float, float]


def prepare(repository: Repository | Script, source: str, target: str, edits: Sequence[Edit]) -> None:
    """Copy a project, make its data, and edit it.

    Raises:
        ValueError: an edit changes nothing.
    """
    shutil.copytree(os.path.join(source, repository.folder), target, symlinks=True)
    for link, name in repository.links:
        os.symlink(name, os.path.join(target, link))
    if repository.data:
        kind, folder, *rest = repository.data
        run([os.path.join(HERE, "public_data.py"), kind, os.path.join(target, folder), *rest])
    edit(target, edits)


def edit(folder: str, edits: Sequence[Edit]) -> None:
    """Edit files of a folder.

    Raises:
        ValueError: an edit changes nothing.
    """
    for each in edits:
        path = os.path.join(folder, each.file)
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        changed = re.sub(each.pattern, each.replacement, text)
        if changed == text:
            raise ValueError(f"{each.file}: the edit {each.pattern!r} changes nothing")
        with open(path, "w", encoding="utf-8", newline="") as stream:
            stream.write(changed)


def measure(repository: Repository, source: str, work: str) -> Row:
    """Run the commands for a repository.

    Args:
        repository: which.
        source: its checkout.
        work: an empty folder.
    """
    seconds: list[float] = []

    def timed(arguments: Sequence[str], folder: str = HERE) -> None:
        begin = time.time()
        run(arguments, folder)
        seconds.append(time.time() - begin)

    def path(*names: str) -> str:
        return os.path.join(work, *names)

    flags = repository.arguments.split()
    start = path("project", repository.start)
    prepare(repository, source, path("project"), repository.edits)
    timed(["-m", "npu_shim", "assess", "--json", path("assess.json"), repository.script, "--", *flags], start)
    mode = ["-d", repository.mode] if repository.mode else []
    timed([TOOL, "-i", path("project"), "-o", path("migrated"), "-r", path("report"), *mode])
    migrated = path("migrated", repository.start, repository.script)
    begin = time.time()
    one = verify(path("one"), ["--copy", repository.script, migrated], flags, start)
    seconds.append(time.time() - begin)
    two: tuple[str | None, float] = (None, 0.0)
    if repository.ranks is not None:
        prepare(repository, source, path("plain"), [*repository.edits, *repository.plain])
        run([TOOL, "-i", path("plain"), "-o", path("ranks"), "-d", "tf_strategy"])
        edit(path("ranks"), repository.by_hand)
        tolerance = ["--tolerance", repository.tolerance] if repository.tolerance else []
        on_ranks = path("ranks", repository.start, repository.script)
        begin = time.time()
        two = verify(
            path("two"),
            ["--copy", "--ranks", "2", *tolerance, repository.script, on_ranks],
            repository.ranks.split(),
            path("plain", repository.start),
        )
        seconds.append(time.time() - begin)
    assessed = read(path("assess.json"))
    operators = [each for graph in assessed["graphs"] if graph["kind"] == "train" for each in graph["operators"]]
    counts = read(path("report", "report.json"))["summary"]
    found = read(path("one", "verify.json"))
    return Row(
        sum(each["count"] for each in operators),
        len(assessed["problems"]),
        counts["rewrites"],
        counts["findings"],
        found["original"]["steps"],
        *one,
        *two,
        seconds,
        (found["original"]["seconds_per_step"], found["migrated"]["seconds_per_step"]),
    )


def line(repository: Repository, row: Row) -> str:
    """Return the row as Markdown."""

    def result(verdict: str, difference: float) -> str:
        how = number(difference) if difference else "equal bit by bit"
        return how if verdict == "agree" else f"{verdict}, {how}"

    address = f"https://github.com/{repository.name}/tree/{repository.commit}"
    script = "/".join(each for each in (repository.folder, repository.script) if each)
    ranks = repository.reason if row.ranks_verdict is None else result(row.ranks_verdict, row.ranks_difference)
    cells = (
        f"[{repository.name}]({address}) `{script}`",
        repository.kind,
        repository.tensorflow,
        f"{row.operators}, {row.problems}",
        f"{row.rewrites}, {row.findings}",
        repository.review,
        f"{row.steps} steps, {result(row.verdict, row.difference)}",
        ranks,
        ", ".join([f"{each:.0f}" for each in row.seconds] + ["-"] * (4 - len(row.seconds))),
        ", ".join(f"{1000 * each:.0f}" for each in row.step_seconds),
    )
    return f"| {' | '.join(cells)} |"


def checkout(repository: Repository, folder: str) -> str:
    """Clone a repository at its commit, and return its folder."""
    subprocess.run(["git", "clone", "-q", f"https://github.com/{repository.name}", folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "-q", repository.commit], check=True)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows of the repositories that run with this TensorFlow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", help="a folder with checkouts of the repositories")
    parser.add_argument("--only", help="the name of one repository")
    options = parser.parse_args(arguments)
    import tensorflow as tf

    stand_ins = os.path.join(HERE, "stand_ins")
    os.environ["PYTHONPATH"] = os.pathsep.join([stand_ins, os.environ.get("PYTHONPATH", "")])
    for repository in REPOSITORIES:
        if not tf.__version__.startswith(repository.tensorflow + ".") or options.only not in (None, repository.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if options.sources:
                source = os.path.join(options.sources, repository.name.split("/")[1])
            else:
                source = checkout(repository, os.path.join(folder, "source"))
            os.mkdir(os.path.join(folder, "work"))
            write(repository, line(repository, measure(repository, source, os.path.join(folder, "work"))))
    return 0


def write(repository: Repository, row: str) -> None:
    """Put the row of a repository into the page."""
    with open(PAGE, encoding="utf-8") as stream:
        before, rest = stream.read().split(_BEGIN)
    table, after = rest.split(_END, 1)
    rows = {each.split("](")[0]: each for each in table.splitlines()[2:]}
    rows[row.split("](")[0]] = row
    head = [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    lines = head + [rows[f"| [{each.name}"] for each in REPOSITORIES if f"| [{each.name}" in rows]
    with open(PAGE, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(before + _BEGIN + "\n".join(lines) + "\n" + _END + after)


if __name__ == "__main__":
    sys.exit(main())
