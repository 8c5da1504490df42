"""Time and memory of the tool in one process, and how they grow with the number of files and the lines of one file.

    python benchmarks/tool_growth.py --python ENV/bin/python --packages     print a table
    python benchmarks/tool_growth.py ... --write                            and keep it

The files are whole packages in the order of their names, from the corpus of tool_throughput.py. The floor and the tool
run alternately, each in a process of its own. The figures are medians. The one file is generated: functions of layers,
of which a third is converted and a third reported. A small script of TensorFlow 2 and the package tensor2tensor, if it
is in the corpus, are also converted once by tf_upgrade_v2, whose time has the import of TensorFlow.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from typing import Any

import results
import tool_corpus
from tool_corpus import Corpus
from tool_runs import Cost, cost, floor_command, median, tool, upgrade_command

_ROUNDS = {10: 9, 100: 9, 1000: 7, 10000: 3}  # by how many files
_LINES = {2500: 5, 5000: 5, 10000: 5, 20000: 5}  # rounds, by how many lines of one file
_OTHERS = 9  # rounds, of a small script and of a package
_SCRIPT, _PACKAGE = tool_corpus.ROOT / "samples" / "digits_fit" / "original.py", "tensor2tensor"
_BLOCK = """
def block_{0}(x, is_training):
    with tf.variable_scope("b{0}"):
        h = tf.layers.dense(x, 64, activation=tf.nn.relu)
        h = tf.layers.dropout(h, rate=0.1, training=is_training)
        h = tf.nn.dropout(h, keep_prob=0.9)
    return h + x
"""


def measure(what: str, corpus: Corpus, times: int, upgrades: bool = False) -> dict[str, Any]:
    """Return seconds and memory of the tool for the files of a corpus, and seconds of the floor and tf_upgrade_v2."""
    folder = corpus.folder
    costs: list[list[Cost]] = [[], []]
    for index in range(times):
        # All output is deleted at the end, because deleting keeps the disk busy for seconds.
        floor, ours = (f"{folder} {name} {index}" for name in ("floor", "tool"))
        costs[0].append(cost(floor_command(sys.executable, str(folder), floor)))
        costs[1].append(cost(tool(sys.executable, "-i", str(folder), "-o", ours, "-j", "1", "--no-cache")))
    least, each = map(median, costs)
    found = dict(each._asdict(), what=what, files=corpus.files, lines=corpus.lines, floor_s=least.cpu_s, rounds=times)
    if upgrades:
        found["upgrade_s"] = cost(upgrade_command(sys.executable, str(folder), f"{folder} upgraded")).cpu_s
    return found


def written(folder: pathlib.Path, text: str) -> Corpus:
    """Write one file into a new folder."""
    folder.mkdir()
    (folder / "model.py").write_text(text, encoding="utf-8")
    return Corpus(folder, 1, text.count("\n"))


def generated(lines: int) -> str:
    """Return the text of a file of so many lines."""
    blocks = "".join(_BLOCK.format(number) for number in range(lines // _BLOCK.count("\n")))
    return "import tensorflow as tf\n" + blocks


def table_of(rows: list[dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    return results.markdown(
        ("of", "files", "lines", "rounds", "CPU seconds", "CPU time / floor", "peak MB", "tf_upgrade_v2"),
        [
            (
                row["what"],
                f"{row['files']:.0f}",
                f"{row['lines']:.0f}",
                f"{row['rounds']:.0f}",
                "{:.2f}".format(row["cpu_s"]),
                f"{row['cpu_s'] / row['floor_s']:.2f}",
                "{:.0f}".format(row["peak_mb"]),
                "{:.1f} s".format(row["upgrade_s"]) if "upgrade_s" in row else "",
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measure, and print or write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    tool_corpus.add_arguments(parser)
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="measure once with ten files, as a smoke test")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        sources, rows = tool_corpus.chosen(args, parser, work), []
        ones = [written(work / "a small script", _SCRIPT.read_text(encoding="utf-8"))]
        for name in filter(lambda name: name.startswith(_PACKAGE), sources):
            ones.append(tool_corpus.copied({name: sources[name]}, work / name))
        for corpus in ones:
            rows.append(measure(corpus.folder.name, corpus, 1 if args.quick else _OTHERS, upgrades=True))
        for count, times in ({10: 1} if args.quick else _ROUNDS).items():
            rows.append(measure("packages", tool_corpus.copied(sources, work / f"{count} files", most=count), times))
        for count, times in ({100: 1} if args.quick else _LINES).items():
            rows.append(measure("a generated file", written(work / f"{count} lines", generated(count)), times))
    results.report("tool_growth", table_of(rows), rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
