"""Seconds and memory of npu-shim profile on large tables, with pyarrow and with Python's csv.

    python benchmarks/profiles.py            prints a table; takes about ten minutes and 4 GB of disk
    python benchmarks/profiles.py --write    and puts it into benchmarks/RESULTS.md and results.json

The tables have the columns of CANN 8 with the metrics of its pipes: 5,000 ops a step, and a step trace. The floor reads
the bytes of the table. Each side runs in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
from typing import Any

import results
from tool_runs import cost

ROOT = pathlib.Path(__file__).resolve().parents[1]
_OPS = 5000
_BEGIN = 1_736_413_971_000_000  # microseconds
_STEP = 100_000
_HEADS = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),aic_total_cycles,"
) + ",".join(
    [
        f"aic_{pipe}_{figure}"
        for pipe in ("mac", "scalar", "mte1", "mte2", "fixpipe")
        for figure in ("time(us)", "ratio")
    ]
    + ["aic_icache_miss_rate", "aiv_time(us)", "aiv_total_cycles"]
    + [f"aiv_{pipe}_{figure}" for pipe in ("vec", "scalar", "mte2", "mte3") for figure in ("time(us)", "ratio")]
    + ["aiv_icache_miss_rate", "cube_utilization(%)"]
)
_READ = "import sys; from npu_shim.cli import main; sys.exit(main(['profile', sys.argv[1]]))"
_SIDES = {
    "pyarrow": _READ,
    "csv": "import sys; sys.modules['pyarrow'] = None\n" + _READ,
    "floor": "import glob, sys\nfor path in glob.glob(sys.argv[1] + '/op_summary*'):\n with open(path, 'rb') as file:\n"
    "  while file.read(1 << 24): pass",
}


def write_tables(folder: pathlib.Path, rows: int) -> float:
    """Write the tables of a training; return the size of op_summary in MB."""
    types = ("MatMulV2", "Add", "Mul", "Cast", "TransData", "LayerNorm", "SoftmaxV2", "Relu")
    ops = []
    for place in range(_OPS):
        of_type = types[place % len(types)]
        core = "AI_CORE" if of_type == "MatMulV2" else "AI_VECTOR_CORE"
        sizes = f"{1024 * (1 + place % 7)},{128 * (1 + place % 5)}"
        before = f"0,1,{place},2,model/layer_{place // 20}/{of_type}_{place},{of_type},static,{core},"
        after = (
            f',1.087,16,0,NO,"""{sizes};{sizes}""",FLOAT16;FLOAT16,ND;ND,"""{sizes}""",FLOAT16,ND,N/A,17.87,5295467,'
        )
        after += (
            "15.425,0.824,8.030,0.479,11.148,0.648,17.314,0.964,5.736,0.031,0.001,9.2,410233,3.406,0.186,4.32,0.086,"
        )
        ops.append((before, after + "7.875,0.552,3.687,0.667,0.023,79.295\n"))
    path = folder / "op_summary_20240101000000.csv"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(_HEADS + "\n")
        for step in range(rows // _OPS):
            now = _BEGIN + step * _STEP
            stream.writelines(
                f"{before}{now + 10 + place * 19}.{place % 1000:03d}\t,{15 + place % 4}.{step % 1000:03d}{after}"
                for place, (before, after) in enumerate(ops)
            )
    heads = "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),Model ID\n"
    with open(folder / "step_trace_20240101000000.csv", "w", encoding="utf-8") as stream:
        stream.write(heads)
        for step in range(rows // _OPS):
            now = _BEGIN + step * _STEP
            stream.write(f"0,{step},{now + 10},{now + 90000},{now + _STEP - 10},{_STEP},1\n")
    return os.path.getsize(path) / 1e6


def measure(rows: int) -> list[dict[str, Any]]:
    """Return seconds and memory of each side."""
    with tempfile.TemporaryDirectory() as folder:
        size = write_tables(pathlib.Path(folder), rows)
        found = []
        for side, code in _SIDES.items():
            made = cost([sys.executable, "-c", code, folder])
            found.append({"side": side, "rows": rows, "size_mb": size, **made._asdict()})
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    floor = {row["rows"]: row["cpu_s"] for row in rows if row["side"] == "floor"}
    return results.markdown(
        ("reader", "rows", "MB", "seconds", "CPU seconds", "CPU time / floor", "peak MB"),
        [
            (
                row["side"],
                f"{row['rows']:,}",
                f"{row['size_mb']:.0f}",
                f"{row['wall_s']:.1f}",
                f"{row['cpu_s']:.1f}",
                f"{row['cpu_s'] / floor[row['rows']]:.1f}",
                f"{row['peak_mb']:.0f}",
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measure, and print or keep the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="50,000 rows: to see that it works")
    args = parser.parse_args(argv)
    os.environ["PYTHONPATH"] = str(ROOT)
    made = [row for rows in ((50_000,) if args.quick else (1_000_000, 10_000_000)) for row in measure(rows)]
    results.report("profiles", table(made), made, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
