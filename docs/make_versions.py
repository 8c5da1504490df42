"""Record small scripts with one version of TensorFlow, and compare them with others, for a table of docs/verify.md.

``python docs/make_versions.py PYTHON PYTHON ...`` takes the Pythons of TensorFlow 1.15, 2.6 and 2.15. Each script of
docs/versions is verified and recorded with one of them, and compared with the other ones. ``--only NAME`` chooses
scripts, whose rows are made anew.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import verified  # noqa: E402
from make_later_names import version  # noqa: E402

SCRIPTS = os.path.join(HERE, "versions")
_BEGIN, _END = "<!-- made by docs/make_versions.py -->\n", "<!-- end of versions -->\n"
_COLUMNS = ("script", "recorded", "compared", "steps", "names compared", "verdict", "cause")


class Pair(NamedTuple):
    """A script of docs/versions, the version that records it, another one, and the cause of a known difference."""

    script: str
    recorded: str
    compared: str
    cause: str = ""


PAIRS = (
    Pair("softmax_session", "1.15", "2.6"),
    Pair("adam_with_summaries", "1.15", "2.6"),
    Pair("adam_with_summaries", "1.15", "2.15"),
    Pair("monitored_dropout", "1.15", "2.15"),
    Pair("convolution_session", "2.6", "2.15"),
    Pair("estimator_adagrad", "1.15", "2.6"),
    Pair("estimator_adagrad", "2.6", "2.15"),
    Pair("estimator_adagrad", "2.15", "2.6"),
    Pair("keras_fit", "1.15", "2.6"),
    Pair("keras_embedding", "2.6", "1.15"),
    Pair("keras_train_on_batch", "2.6", "2.15", "RMSprop of Keras 2.11 and later adds epsilon inside the square root"),
    Pair("function_and_tape", "2.6", "2.15"),
    Pair("recurrent_saver", "2.15", "1.15"),
)


def measure(pair: Pair, pythons: dict[str, str], work: str) -> str:
    """Record and compare a script in an empty folder. Return the row of the table."""
    script = os.path.join(SCRIPTS, pair.script + ".py")
    recording = os.path.join(work, "recording")
    options = ["--timeout", "600", "--record", recording, "--perturbed", "2"]
    verified.run(["-m", "npu_shim", "verify", *options, script, "--", "{run}/out"], work, (0,), pythons[pair.recorded])
    options = ["--timeout", "600", "--against", recording, "--initial-variables"]
    report, python = os.path.join(work, "reports"), pythons[pair.compared]
    found = verified.verify(name(pair), [*options, script], work, report, python)
    steps, names = found["migrated"]["steps"], len(found["streams"])
    cells = (
        kind(pair),
        pair.recorded,
        pair.compared,
        steps,
        names,
        verified.verdict(found),
        pair.cause if found["verdict"] == "differ" else "",
    )
    return f"| {' | '.join(str(each).replace('|', ' ') for each in cells)} |"


def known() -> dict[Pair, str]:
    """Return the row of each pair in the page, "" without one."""
    with open(verified.PAGES[0], encoding="utf-8") as stream:
        lines = stream.read().split(_BEGIN)[1].split(_END)[0].splitlines()
    begins = {pair: f"| {kind(pair)} | {pair.recorded} | {pair.compared} |" for pair in PAIRS}
    return {pair: next((line for line in lines if line.startswith(begin)), "") for pair, begin in begins.items()}


def name(pair: Pair) -> str:
    """Return the name of an entry."""
    return f"{pair.script} {pair.recorded} {pair.compared}"


def kind(pair: Pair) -> str:
    """Return the docstring of a script."""
    with open(os.path.join(SCRIPTS, pair.script + ".py"), encoding="utf-8") as stream:
        return ast.get_docstring(ast.parse(stream.read())) or ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and compare the scripts, and write the table."""
    parser = verified.parser(__doc__)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="with TensorFlow 1.15, 2.6 or 2.15")
    options = parser.parse_args(arguments)
    verified.check_only(parser, options.only, map(name, PAIRS))
    pythons = {version(each): each for each in options.pythons}
    rows = known()
    for pair in () if options.table else PAIRS:
        if re.search(options.only, name(pair)) and not (options.missing and rows[pair]):
            with verified.folder_of(name(pair), options.keep) as work:
                rows[pair] = measure(pair, pythons, work)
            verified.put(table(rows), _BEGIN, _END)
    return 0


def table(rows: dict[Pair, str]) -> str:
    """Return the rows that there are as a table."""
    return verified.markdown(_COLUMNS, ()) + "".join(f"{row}\n" for row in rows.values() if row)


if __name__ == "__main__":
    sys.exit(main())
