"""Make small mistakes in the product one at a time, and see which tests notice them.

    python tests/mutation/run.py --python ENV/bin/python                  all areas: one to two hours
    python tests/mutation/run.py --python ENV/bin/python --area operators --number 3

The mistakes are drawn with a seed, so a second run makes the same ones as long as the sources are the same. Each is made
in a copy of the checkout. The tests of its area run without the mark "nightly", and if they pass, with it. What no test
notices is either a mistake without an effect or a gap: read it. Results go to tests/mutation/RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Iterator, NamedTuple

from areas import AREAS, Area
from mutations import Mutation, mutations

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = pathlib.Path(__file__).with_name("RESULTS.md")
_TIMEOUT_S = 600


class Result(NamedTuple):
    """A mistake that was made: noticed "by day", "by night" or "no", by which test, and after how long."""

    area: str
    place: str
    what: str
    noticed: str
    test: str
    seconds: float


def drawn(area: Area, number: int, seed: int) -> list[tuple[pathlib.Path, Mutation]]:
    """Return the mistakes of an area: at most one a file, until each file has one."""
    choose = random.Random(f"{seed} {area.name}")
    files = sorted({path for pattern in area.files.split() for path in ROOT.glob(pattern)})
    of_files = {path: list(mutations(path.read_text(encoding="utf-8"))) for path in files}
    found: list[tuple[pathlib.Path, Mutation]] = []
    while len(found) < number:
        left = [path for path in files if of_files[path]]
        choose.shuffle(left)
        for path in left[: number - len(found)]:
            found.append((path, of_files[path].pop(choose.randrange(len(of_files[path])))))
    return found


def copy_checkout(folder: pathlib.Path) -> None:
    """Copy the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def first_failure(python: str, folder: pathlib.Path, tests: str, marks: str) -> str:
    """Return the first test that fails, "" if none does."""
    command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *tests.split()]
    environ = {**os.environ, "PYTHONPATH": f"{folder}:{folder / 'tools'}", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return f"no end after {_TIMEOUT_S} s"
    if process.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    return failed.group(1) if failed else "pytest cannot collect the tests"


def results(python: str, folder: pathlib.Path, area: Area, number: int, seed: int) -> Iterator[Result]:
    """Make the mistakes of an area, and yield what notices them."""
    tests = " ".join(word for word in area.tests.split())
    for path, mutation in drawn(area, number, seed):
        source = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        (folder / name).write_text(mutation.apply(source), encoding="utf-8")
        started, noticed = time.monotonic(), "by day"
        test = first_failure(python, folder, tests, "not nightly")
        if not test:
            noticed, test = "by night", first_failure(python, folder, tests, "")
        if not test:
            noticed = "no"
        (folder / name).write_text(source, encoding="utf-8")
        yield Result(
            area.name,
            f"{name}:{mutation.line}",
            mutation.describe(source),
            noticed,
            test,
            time.monotonic() - started,
        )


def written(found: list[Result]) -> str:
    """Return the page."""
    lines = ["# Small mistakes, and the tests that notice them", "", "Made by `tests/mutation/run.py`.", ""]
    lines += ["| area | mistakes | noticed by day | only by night | by no test |", "| --- | --- | --- | --- | --- |"]
    for area in [*dict.fromkeys(each.area for each in found), "all"]:
        of_area = [each.noticed for each in found if area in (each.area, "all")]
        counts = [str(of_area.count(noticed)) for noticed in ("by day", "by night", "no")]
        lines.append(f"| {area} | {len(of_area)} | {' | '.join(counts)} |")
    lines += ["", "| place | mistake | noticed | test |", "| --- | --- | --- | --- |"]
    for each in found:
        what = each.what.replace("|", "\\|")
        test = each.test.replace("|", "\\|")
        lines.append(f"| {each.place} | {what[:160]} | {each.noticed} | {test[:140]} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Make the mistakes, and write the page after each area."""
    names = [area.name for area in AREAS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of a test environment")
    parser.add_argument("--area", action="append", choices=names, help="only this area")
    parser.add_argument(
        "--number", type=int, help="of mistakes in each area; by default that of tests/mutation/areas.py"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found: list[Result] = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        copy_checkout(folder)
        for area in AREAS:
            if arguments.area and area.name not in arguments.area:
                continue
            for result in results(arguments.python, folder, area, arguments.number or area.number, arguments.seed):
                found.append(result)
                print(
                    f"{result.noticed:8} {result.seconds:5.0f} s {result.place} {result.what}: {result.test}",
                    flush=True,
                )
            if not arguments.area:
                RESULTS.write_text(written(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
