"""Growth of the tool's time and memory with the number of files, in one process.

    python benchmarks/tool_growth.py --python ENV/bin/python --packages     print a table
    python benchmarks/tool_growth.py ... --write                            and keep it

The files are whole packages in the order of their names, from the corpus of tool_throughput.py. The floor and the tool
run alternately, each in a process of its own. The figures are medians.
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


def measure(sources: dict[str, str], work: pathlib.Path, rounds: dict[int, int]) -> list[dict[str, Any]]:
    """Return seconds and memory for growing numbers of files, of the tool and of the floor."""
    found: list[dict[str, Any]] = []
    for count, times in rounds.items():
        corpus = tool_corpus.copied(sources, work / (f"{count} files"), most=count)
        source = str(corpus.folder)
        costs: list[list[Cost]] = [[], []]
        for index in range(times):
            # All output is deleted at the end, because deleting keeps the disk busy for seconds.
            floor, ours = (str(work / (f"{name} {index} of {count} files")) for name in ("floor", "tool"))
            costs[0].append(cost(floor_command(sys.executable, source, floor)))
            costs[1].append(cost(tool(sys.executable, "-i", source, "-o", ours, "-j", "1", "--no-cache")))
        least, each = map(median, costs)
        found.append(dict(each._asdict(), files=corpus.files, lines=corpus.lines, floor_s=least.cpu_s, rounds=times))
    return found


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
        rows = measure(tool_corpus.chosen(args, parser, work), work, {10: 1} if args.quick else _ROUNDS)
    results.report("tool_growth", table_of(rows), rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
