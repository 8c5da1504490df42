"""The time until the ranks of npu-shim launch are at their first line, and the memory of each.

    python benchmarks/launch.py            prints a table; takes about three minutes
    python benchmarks/launch.py --write    and puts it into benchmarks/RESULTS.md and results.json

Forked ranks and new processes (--no-preload, the baseline) in turns. The time is from the start of the command until
the last rank has imported TensorFlow. The memory is the mean PSS of the ranks: pages that several processes share count
in parts. All ranks are alive then, and have done nothing else.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results  # noqa: E402

RANKS = (1, 2, 8, 32)
MODES = {"new": ("--no-preload",), "forked": ()}
SCRIPT = """
import os, time
import tensorflow
first = time.time()
rank, size = os.environ["RANK_ID"], int(os.environ["RANK_SIZE"])
def meet(name, text):
    with open(f"{name}.{rank}.new", "w") as file:
        file.write(text)
    os.rename(f"{name}.{rank}.new", f"{name}.{rank}")
    while sum(found.startswith(name + ".") and not found.endswith(".new") for found in os.listdir(".")) < size:
        time.sleep(0.05)
meet("first", str(first))
with open("/proc/self/smaps_rollup") as file:
    kilobytes = next(line.split()[1] for line in file if line.startswith("Pss:"))
meet("memory", kilobytes)
"""


def job(ranks: int, options: Sequence[str]) -> tuple[float, float]:
    """Seconds until the last rank is at its first line, and megabytes of each rank."""
    root = str(results.RESULTS.parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "train.py").write_text(SCRIPT)
        begin = time.time()
        subprocess.run(
            [sys.executable, "-m", "npu_shim", "launch", "--ranks", str(ranks), *options, "train.py"],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([root, root + "/tools"]),
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "PYTHONDONTWRITEBYTECODE": "",
            },
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        first = [float(path.read_text()) for path in pathlib.Path(folder).glob("first.*")]
        memory = [int(path.read_text()) for path in pathlib.Path(folder).glob("memory.*")]
    assert len(first) == len(memory) == ranks
    return max(first) - begin, statistics.mean(memory) * 1024 / 1e6


def measure(numbers: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """One row for each number of ranks, with the medians of both modes, after a job that may compile."""
    import tensorflow as tf

    job(1, ())
    rows = []
    for ranks in numbers:
        found: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode, options in MODES.items():
                found[mode].append(job(ranks, options))
        row: dict[str, Any] = {"TensorFlow": tf.__version__, "ranks": ranks}
        for mode, pairs in found.items():
            row[mode + "_s"], row[mode + "_mb"] = (statistics.median(each) for each in zip(*pairs))
        rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Seconds and megabytes, the ratios of both modes, and the time of so many ranks in that of one new process."""
    head = ("TensorFlow", "ranks", "new processes", "forked", "ratio", "times one rank", "MB a rank", "forked", "ratio")
    one = {row["TensorFlow"]: row["new_s"] for row in rows if row["ranks"] == 1}  # the baseline of "times one rank"
    return results.markdown(
        head,
        [
            [
                row["TensorFlow"],
                str(row["ranks"]),
                f"{row['new_s']:.2f} s",
                f"{row['forked_s']:.2f} s",
                f"{row['forked_s'] / row['new_s']:.2f}",
                f"{row['forked_s'] / one[row['TensorFlow']]:.2f}",
                f"{row['new_mb']:.0f}",
                f"{row['forked_mb']:.0f}",
                f"{row['forked_mb'] / row['new_mb']:.2f}",
            ]
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""

    def measured(quick: bool) -> list[dict[str, Any]]:
        return measure((1, 2), 1) if quick else measure(RANKS[:-1], 3) + measure(RANKS[-1:], 1)

    return results.run("launch", __doc__ or "", argv, "one and two ranks, once", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
