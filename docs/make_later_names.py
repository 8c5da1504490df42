"""Compare public scripts, converted and with TensorFlow 2.6, with a recording of the original of a later version.

``python docs/make_later_names.py PYTHON ...`` takes the Python of TensorFlow 2.6, and those of 2.15 and 2.21 as PYTHON.
It verifies and records each script of later_names.py with its later version, converts it, compares it with 2.6, writes
the result to later_names.tsv and makes a table of docs/public-code.md. ``--only NAME`` chooses scripts, and ``--table``
only makes the table. ``--sources`` and ``--keep`` are those of make_acceptance.py.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from acceptance import Script  # noqa: E402
from later_names import CAUSES, QUIET, SCRIPTS  # noqa: E402
from make_acceptance import SOURCES, verdict  # noqa: E402
from make_paths import read, run  # noqa: E402
from make_public_paths import TOOL, edit  # noqa: E402

PAGE = os.path.join(HERE, "public-code.md")
RESULTS = os.path.join(HERE, "later_names.tsv")
_BEGIN, _END = "<!-- made by docs/make_later_names.py -->\n", "<!-- end of later names -->\n"
_COLUMNS = ("script", "later names", "recorded", "steps", "names compared", "verdict with 2.6", "cause", "seconds")
_STEPS = 4


class Result(NamedTuple):
    """The result of a script.

    Attributes:
        script: its path.
        steps, names: that were compared.
        verdict: with TensorFlow 2.6, with the first value that departs.
        seconds: of recording and comparison.
    """

    script: str
    steps: int
    names: int
    verdict: str
    seconds: int


def path(script: Script) -> str:
    """Return the path of a script in its repository."""
    return f"{script.folder}/{script.script}"


def measure(script: Script, recorder: str, sources: str, work: str) -> Result:
    """Record a script, convert it, and compare it.

    Args:
        script: which.
        recorder: the Python of the later version.
        sources: the folder of the clones.
        work: an empty folder.
    """
    begin = time.time()
    clone = os.path.join(sources, script.repository)
    text = subprocess.check_output(["git", "--git-dir", clone, "show", f"{script.commit}:{path(script)}"], text=True)
    original = os.path.join(work, script.script)
    with open(original, "w", encoding="utf-8") as stream:
        stream.write(functools.reduce(lambda text, each: re.sub(*each, text), QUIET, text))
    edit(work, script.edits)
    recording, reports = os.path.join(work, "recording"), os.path.join(work, "reports")
    options = ["--steps", str(_STEPS), "--timeout", "600", "--copy"]
    recorded = [*options, "--record", recording, "--perturbed", "2", "-r", os.path.join(work, "later")]
    run(["-m", "npu_shim", "verify", *recorded, original], work, range(4), recorder)
    if not os.path.isdir(recording):
        return _result(script, begin, read(os.path.join(work, "later", "verify.json")), f"{script.tensorflow}: ")
    run([TOOL, "-i", original, "-o", os.path.join(work, "migrated")])
    migrated = os.path.join(work, "migrated", script.script)
    compared = ["--against", recording, "--initial-variables", "--timeout", "600", "-r", reports]
    run(["-m", "npu_shim", "verify", *compared, migrated], work, range(4))
    return _result(script, begin, read(os.path.join(reports, "verify.json")))


def _result(script: Script, begin: float, found: Any, before: str = "") -> Result:
    print(path(script), before, found["verdict"], *found["problems"], sep="\n    ", file=sys.stderr, flush=True)
    seconds = round(time.time() - begin)
    return Result(path(script), found["migrated"]["steps"], len(found["streams"]), before + verdict(found), seconds)


def results() -> dict[str, Result]:
    """Return the results by script; those of scripts that the list no longer has are left out."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream, delimiter="\t")
    made = {name: Result(name, int(steps), int(names), how, int(spent)) for name, steps, names, how, spent in rows}
    return {path(each): made[path(each)] for each in SCRIPTS if path(each) in made}


def keep(made: Result) -> None:
    """Write a result; the others stay."""
    kept = {**results(), made.script: made}
    with open(RESULTS, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(Result._fields)
        writer.writerows(kept[path(each)] for each in SCRIPTS if path(each) in kept)


def table() -> str:
    """Return the table of all results, with a line that counts them."""
    made = [(each, results()[path(each)]) for each in SCRIPTS if path(each) in results()]
    agree = sum(result.verdict == "agree" for _, result in made)
    lines = [f"{len(made)} scripts: {agree} agree.", ""]
    lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    for script, result in made:
        name = f"[{script.script}](https://github.com/{script.repository}/blob/{script.commit}/{path(script)})"
        cause = "" if result.verdict == "agree" else CAUSES.get(script.script, "")
        cells = (
            name,
            script.kind,
            script.tensorflow,
            result.steps,
            result.names,
            result.verdict,
            cause,
            result.seconds,
        )
        lines.append(f"| {' | '.join(str(each).replace('|', ' ') for each in cells)} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Put the table into the page."""
    with open(PAGE, encoding="utf-8") as stream:
        before, rest = stream.read().split(_BEGIN)
    with open(PAGE, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(before + _BEGIN + table() + _END + rest.split(_END, 1)[1])


def version(python: str) -> str:
    """Return the version of TensorFlow of a Python, as in "2.15"."""
    command = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    found = subprocess.check_output(command, stderr=subprocess.DEVNULL, universal_newlines=True)
    return ".".join(found.split(".")[:2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and compare the scripts, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="with TensorFlow 2.15 or 2.21")
    parser.add_argument("--only", default="", metavar="NAME", help="scripts whose paths match this regular expression")
    parser.add_argument("--sources", default=SOURCES, metavar="DIR", help="bare clones at OWNER/NAME (%(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep scripts, recordings and reports in DIR/NAME")
    parser.add_argument("--table", action="store_true", help="only make the table")
    options = parser.parse_args(arguments)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "stand_ins"), os.environ.get("PYTHONPATH", "")])
    pythons = {version(each): each for each in options.pythons}
    for script in () if options.table else SCRIPTS:
        if script.tensorflow in pythons and re.search(options.only, path(script)):
            with tempfile.TemporaryDirectory() as folder:
                work = os.path.join(options.keep or folder, script.script[:-3])
                shutil.rmtree(work, ignore_errors=True)
                os.makedirs(work)
                keep(measure(script, pythons[script.tensorflow], options.sources, work))
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
