"""Compare public scripts, converted and with TensorFlow 2.6, with a recording of the original of a later version.

``python docs/make_later_names.py PYTHON ...`` takes the Python of TensorFlow 2.6, and those of 2.15 and 2.21 as PYTHON.
It verifies and records each script of later_names.py with its later version, converts it, compares it with 2.6, writes
the result to later_names.tsv and makes a table of docs/public-code.md. ``--help`` has the options.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import verified  # noqa: E402
from later_names import CAUSES, QUIET, SCRIPTS  # noqa: E402
from record_list import Program  # noqa: E402

PAGE = os.path.join(HERE, "public-code.md")
_BEGIN, _END = "<!-- made by docs/make_later_names.py -->\n", "<!-- end of later names -->\n"
_COLUMNS = ("script", "later names", "recorded", "steps", "names compared", "verdict with 2.6", "cause", "seconds")
_STEPS = 4


class Result(NamedTuple):
    """The result of a script.

    Attributes:
        name: of the entry.
        steps, names: that were compared.
        verdict: with TensorFlow 2.6, with the first value that departs.
        seconds: of recording and comparison.
    """

    name: str
    steps: int
    names: int
    verdict: str
    seconds: int


def measure(script: Program, recorder: str, sources: str, work: str) -> Result:
    """Record a script, convert it, and compare it.

    Args:
        script: which.
        recorder: the Python of the later version.
        sources: the folder of the clones.
        work: an empty folder.
    """
    begin = time.time()
    text = verified.git(script.repository, sources, "show", f"{script.commit}:{script.path}").decode()
    original, recording = os.path.join(work, script.script), os.path.join(work, "recording")
    with open(original, "w", encoding="utf-8") as stream:
        stream.write(functools.reduce(lambda text, each: re.sub(*each, text), QUIET, text))
    verified.edit(work, script.edits)
    options = ["--steps", str(_STEPS), "--timeout", "600", "--copy", "--record", recording, "--perturbed", "2"]
    found = verified.verify(script.name, [*options, original], work, os.path.join(work, "later"), recorder)
    if not os.path.isdir(recording):
        return _result(script, begin, found, f"{script.tensorflow}: ")
    verified.run([verified.TOOL, "-i", original, "-o", os.path.join(work, "migrated")])
    options = ["--against", recording, "--initial-variables", "--timeout", "600"]
    migrated = os.path.join(work, "migrated", script.script)
    return _result(
        script, begin, verified.verify(script.name, [*options, migrated], work, os.path.join(work, "reports"))
    )


def _result(script: Program, begin: float, found: Any, before: str = "") -> Result:
    steps, names, how = found["migrated"]["steps"], len(found["streams"]), before + verified.verdict(found)
    return Result(script.name, steps, names, how, round(time.time() - begin))


def kept() -> verified.Kept:
    """Return the results."""
    return verified.Kept("later_names.tsv", Result, [each.name for each in SCRIPTS])


def table() -> str:
    """Return the table of all results, with a line that counts them."""
    made = [(each, kept().read()[each.name]) for each in SCRIPTS if each.name in kept().read()]
    rows = []
    for script, result in made:
        cause = "" if result.verdict == "agree" else CAUSES.get(script.script, "")
        seen = result.steps, result.names, result.verdict, cause, result.seconds
        rows.append((f"[{script.script}]({script.link})", script.kind, script.tensorflow, *seen))
    trained, agree = (
        sum(result.verdict.startswith(how) for _, result in made) for how in (("agree", "differ "), "agree")
    )
    count = f"{trained} of {len(SCRIPTS)} scripts train with TensorFlow 2.6.5, and {agree} agree."
    return f"{count}\n\n{verified.markdown(_COLUMNS, rows)}"


def version(python: str) -> str:
    """Return the version of TensorFlow of a Python, as in "2.15"."""
    command = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    found = subprocess.check_output(command, stderr=subprocess.DEVNULL, universal_newlines=True)
    return ".".join(found.split(".")[:2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and compare the scripts, and write the table."""
    parser = verified.parser(__doc__)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="with TensorFlow 2.15 or 2.21")
    options = parser.parse_args(arguments)
    verified.check_only(parser, options.only, [script.name for script in SCRIPTS])
    verified.use_stand_ins()
    pythons = {version(each): each for each in options.pythons}
    for script in () if options.table else SCRIPTS:
        is_known = options.missing and script.name in kept().read()
        if script.tensorflow in pythons and re.search(options.only, script.name) and not is_known:
            with verified.folder_of(script.name, options.keep) as work:
                kept().add(measure(script, pythons[script.tensorflow], options.sources, work))
    verified.put(table(), _BEGIN, _END, [PAGE])
    return 0


if __name__ == "__main__":
    sys.exit(main())
