"""Growth of the tool's time and memory with the number of files, and with the lines of one file, in one process.

    python benchmarks/tool_growth.py --python ENV/bin/python --packages     print a table
    python benchmarks/tool_growth.py ... --write                            and keep it

The files are whole packages in the order of their names, from the corpus of tool_throughput.py. The floor and the tool
run alternately, each in a process of its own. The figures are medians. The one file is generated: functions of layers,
of which a third is converted and a third reported.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from typing import Any

import results
import tool_corpus
from tool_runs import Cost, cost, floor_command, median, tool

_ROUNDS = {10: 9, 100: 9, 1000: 7, 10000: 3}  # by how many files
_LINES = {2500: 5, 5000: 5, 10000: 5, 20000: 5}  # rounds, by how many lines of one file
_BLOCK = """
def block_{0}(x, is_training):
    with tf.variable_scope("b{0}"):
        h = tf.layers.dense(x, 64, activation=tf.nn.relu)
        h = tf.layers.dropout(h, rate=0.1, training=is_training)
        h = tf.nn.dropout(h, keep_prob=0.9)
    return h + x
"""


def measure(folder: pathlib.Path, files: int, lines: int, times: int) -> dict[str, Any]:
    """Return seconds and memory for the files of a folder, of the tool and of the floor."""
    costs: list[list[Cost]] = [[], []]
    for index in range(times):
        # All output is deleted at the end, because deleting keeps the disk busy for seconds.
        floor, ours = (f"{folder} {name} {index}" for name in ("floor", "tool"))
        costs[0].append(cost(floor_command(sys.executable, str(folder), floor)))
        costs[1].append(cost(tool(sys.executable, "-i", str(folder), "-o", ours, "-j", "1", "--no-cache")))
    least, each = map(median, costs)
    return dict(each._asdict(), files=files, lines=lines, floor_s=least.cpu_s, rounds=times)


def generated(folder: pathlib.Path, lines: int) -> pathlib.Path:
    """Write a file of so many lines into a new folder."""
    folder.mkdir()
    blocks = "".join(_BLOCK.format(number) for number in range(lines // _BLOCK.count("\n")))
    (folder / "model.py").write_text("import tensorflow as tf\n" + blocks, encoding="utf-8")
    return folder


def table_of(rows: list[dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    return results.markdown(
        ("files", "lines", "rounds", "CPU seconds", "CPU time / floor", "peak MB"),
        [
            (
                f"{row['files']:.0f}",
                f"{row['lines']:.0f}",
                f"{row['rounds']:.0f}",
                "{:.2f}".format(row["cpu_s"]),
                f"{row['cpu_s'] / row['floor_s']:.2f}",
                "{:.0f}".format(row["peak_mb"]),
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
        for count, times in ({10: 1} if args.quick else _ROUNDS).items():
            corpus = tool_corpus.copied(sources, work / f"{count} files", most=count)
            rows.append(measure(corpus.folder, corpus.files, corpus.lines, times))
        for count, times in ({100: 1} if args.quick else _LINES).items():
            rows.append(measure(generated(work / f"{count} lines", count), 1, count, times))
    results.report("tool_growth", table_of(rows), rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
