"""Our comparison of dumps and the vendor's own, which runs here without CANN: the same figures, and a table it can read."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

from npu_shim.cli import main
from npu_shim.dumps import reference
from tests.dumps.make_vendor_figures import FILE, figures, vendor_folder
from tests.dumps.messages import dump_bytes, tensor
from tests.dumps.written_reference import write as write_reference


def test_the_kept_figures_are_those_of_the_vendor() -> None:
    assert figures() == json.loads(FILE.read_text(encoding="utf-8"))


def test_the_advisor_of_the_vendor_reads_the_table(tmp_path: pathlib.Path) -> None:
    array = np.random.RandomState(0).normal(size=(3, 4)).astype(np.float32)
    write_reference(str(tmp_path / "cpu"), [(reference.Output(op), array) for op in ("a", "b", "c")])
    (tmp_path / "card").mkdir()
    for number, (op, made) in enumerate({"a": array, "b": -array, "c": array, "=gone": array}.items()):
        path = tmp_path / "card" / f"Add.{op}.{number}.0.{1700000000000000 + number}"
        path.write_bytes(dump_bytes(op, [tensor(made)]))
    assert main(["dumps", "compare", str(tmp_path / "card"), str(tmp_path / "cpu"), "-r", str(tmp_path / "out")]) == 1
    table = tmp_path / "out" / "dumps.csv"
    program = [sys.executable, "mscmp_advisor.py", "-i", str(table), "-o", str(tmp_path / "out")]
    done = subprocess.run(program, cwd=vendor_folder(), env=dict(os.environ, PYTHONPATH=""), stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stdout.decode()
    advice = (tmp_path / "out" / "advisor_summary.txt").read_text(encoding="utf-8")
    with open(table, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    index = next(row["Index"] for row in rows if row["NPUDump"] == "b")
    assert "Detection Type: Global Consistency" in advice and f"Operator Index: {index}\n" in advice
