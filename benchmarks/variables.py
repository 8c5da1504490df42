"""The cost of adding up gradients for 10 to 2,000 variables of the same total size.

    python benchmarks/variables.py            prints a table; takes about two minutes
    python benchmarks/variables.py --write    and puts it into benchmarks/RESULTS.md and results.json

The gradients are fused into messages as is usual. The baseline is one tensor of
as many bytes: what is more grows with the variables. All run in turns in the
same two processes. Building is what the collectives add to a graph that has the
gradients already, the fastest of three times; reading is a step that does
nothing with the variables, the limit for what grows with their number.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import fusion
import processes
import results

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

COUNTS = (10, 30, 100, 300, 1000, 2000)
BASELINE = 1


def work(
    rank: int, size: int, barrier: Any, counts: list[int], all_bytes: int, builds: int, repeats: int, rounds: int
) -> dict[int, tuple[int, float, float, float]]:
    """Return for one rank, by number of variables, the collectives and the seconds to build, read and add up."""
    from npu_shim import npu_init

    numbers = all_bytes // 4
    sums: dict[int, fusion.Sum] = {}
    for count in [BASELINE] + counts:
        shapes = [[numbers]] if count == BASELINE else fusion.shapes_of(numbers, count)
        sums[count] = fusion.summed(rank, size, shapes, lambda tensors: npu_init.npu_allreduce(tensors, "sum"), builds)
    reads = {count: each.read for count, each in sums.items()}
    read_seconds = fusion.measured(reads, barrier, repeats, rounds)
    seconds = fusion.measured({count: each.run for count, each in sums.items()}, barrier, repeats, rounds)
    return {
        count: (each.collectives, each.build_seconds, read_seconds[count], seconds[count])
        for count, each in sums.items()
    }


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="few and small tensors, once each: to see that it works")
    args = parser.parse_args(argv)
    counts, all_bytes, *times = (
        ([10, 100], 1 << 20, 1, 1, 1) if args.quick else (list(COUNTS), fusion.ALL_BYTES, 3, 4, 9)
    )
    found = processes.run_ranks(fusion.RANKS, work, counts, all_bytes, *times)
    base = found[BASELINE][-1]
    rows = [
        {
            "variables": count,
            "ranks": fusion.RANKS,
            "bytes": all_bytes,
            "collectives": collectives,
            "build_seconds": build_seconds,
            "read_seconds": read_seconds,
            "seconds": seconds,
            "ratio": seconds / base,
        }
        for count, (collectives, build_seconds, read_seconds, seconds) in found.items()
    ]
    table = results.markdown(
        ("variables", "collectives", "building, ms", "reading, ms", "a sum, ms", "ratio"),
        [
            (
                "one tensor" if row["variables"] == BASELINE else f"{row['variables']:.0f}",
                f"{row['collectives']:.0f}",
                f"{row['build_seconds'] * 1e3:.1f}",
                f"{row['read_seconds'] * 1e3:.2f}",
                f"{row['seconds'] * 1e3:.1f}",
                "{:.2f}".format(row["ratio"]),
            )
            for row in rows
        ],
    )
    results.report("variables", table, rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
