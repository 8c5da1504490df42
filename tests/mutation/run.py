"""Make small mistakes in the product one at a time, and see which tests notice them.

    python tests/mutation/run.py --envs FOLDER                              all areas: some hours
    python tests/mutation/run.py --envs FOLDER --area operators --number 3  a few of one area

FOLDER has the environments that tests/run.sh made. The mistakes are drawn with a seed, so a second run makes the same ones
as long as the sources are the same. Each is made in a copy of the checkout. The steps of its area run one after another
until a test fails: first only the three test files that are nearest to the changed file by their names and the functions that
they name, then all of them, then the nightly tests of those that are near it. What no test notices is either a mistake
without an effect or a gap: read it. Results go to tests/mutation/results.tsv, a line each, and a further run goes on where
that file ends.
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
from typing import NamedTuple

from areas import AREAS, BY_NIGHT, LEFT_OUT, WITHOUT_EFFECT, Area
from mutations import Mutation, mutations

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = pathlib.Path(__file__).with_name("results.tsv")
_COLUMNS = "area\tplace\tmistake\tenvironment\tsuite\twhen\ttest\tseconds"
_TIMEOUT_S = 900
_COMMON_WORDS = {"", "npu", "shim", "tensorflow"}  # of paths


class Noticed(NamedTuple):
    """The test that noticed a mistake: `when` is "day", "night", or "no" if nothing did."""

    environment: str
    suite: str
    when: str
    test: str


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


def near_first(paths: list[str], changed: pathlib.Path, only_near: bool = False) -> list[str]:
    """Return the test files under the paths, first those with most words of the changed file's name and functions.

    Args:
        paths: of files and folders.
        changed: the file with the mistake.
        only_near: True to leave out files that share none.
    """
    words = {*re.split(r"[/_]", changed.relative_to(ROOT).with_suffix("").as_posix())} - _COMMON_WORDS
    source = changed.read_text(encoding="utf-8")
    names = {changed.stem, *re.findall(r"^(?:def|class) ([A-Za-z]\w*)", source, re.M)}
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
    files = [
        file for path in paths for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("test_*.py"))
    ]
    tests = sorted({file for file in files if not file.stem.endswith("_benchmark")})  # those compare no values
    named = {file: pattern.findall(file.read_text(encoding="utf-8")) for file in tests}
    shared = {file: sum(word in file.stem for word in words) for file in tests}
    tests.sort(key=lambda file: (-shared[file], -len(set(named[file])), -len(named[file])))
    return [file.relative_to(ROOT).as_posix() for file in tests if shared[file] or named[file] or not only_near]


def first_failure(python: pathlib.Path, folder: pathlib.Path, arguments: list[str], variables: dict[str, str]) -> str:
    """Return the first test that fails, "" if none does."""
    command = [str(python), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    environ = {**os.environ, "PYTHONPATH": f"{folder}:{folder / 'tools'}", "PYTHONDONTWRITEBYTECODE": "1", **variables}
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
    if process.returncode in (0, 5):  # 5: none of them was chosen
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.M)
    return failed.group(1) if failed else "pytest cannot collect the tests"


def noticed(envs: pathlib.Path, folder: pathlib.Path, area: Area, changed: pathlib.Path) -> Noticed:
    """Run the tests of an area until one fails: by day the nearest, then all, then by night."""
    for when, only_near, most in (("day", True, 3), ("day", False, None), ("night", True, None)):
        for step in area.steps:
            environment, suite, *arguments = step.split()
            variables = dict(word.split("=") for word in arguments if "=" in word)
            arguments = [word for word in arguments if "=" not in word]
            marks = "nightly" if when == "night" else "not nightly"
            if arguments[0] == "-m":
                marks = f"{arguments[1]} and {marks}" if when == "day" else marks
                arguments = arguments[2:]
            python = next(envs.glob(f"{environment}-*/bin/python"))
            near = near_first(arguments, changed, only_near)[:most]
            files = [file for file in near if file.rpartition("/")[2] not in LEFT_OUT.get(environment, ())]
            test = first_failure(python, folder, ["-m", marks, *files], variables) if files else ""
            if test:
                return Noticed(environment, suite, "night" if environment in BY_NIGHT else when, test)
    return Noticed("", "", "no", "")


def main() -> int:
    """Make the mistakes, and add a line of the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=pathlib.Path, required=True, help="the folder of the test environments")
    parser.add_argument("--area", action="append", choices=[area.name for area in AREAS], help="only this area")
    parser.add_argument("--number", type=int, help="of mistakes in each area, instead of that of areas.py")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not RESULTS.exists():
        RESULTS.write_text(_COLUMNS + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        copy_checkout(folder)
        for area in AREAS:
            if arguments.area and area.name not in arguments.area:
                continue
            for path, mutation in drawn(area, arguments.number or area.number, arguments.seed):
                source, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
                line = [area.name, f"{name}:{mutation.line}", mutation.describe(source)[:160].replace("\t", " ")]
                if "\t".join(line) + "\t" in RESULTS.read_text(encoding="utf-8"):
                    continue
                (folder / name).write_text(mutation.apply(source), encoding="utf-8")
                started = time.monotonic()
                if line[1] in WITHOUT_EFFECT:
                    line += Noticed("", "", "no", "")
                else:
                    line += noticed(arguments.envs, folder, area, path)
                line.append(f"{time.monotonic() - started:.0f}")
                (folder / name).write_text(source, encoding="utf-8")
                print(*line, sep=" | ", flush=True)
                with RESULTS.open("a", encoding="utf-8") as results:
                    results.write("\t".join(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
