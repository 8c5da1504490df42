"""The time that importing npu_shim adds to importing TensorFlow.

    python benchmarks/imports.py            prints a table; takes about a minute
    python benchmarks/imports.py --write    and puts it into benchmarks/RESULTS.md and results.json

Every case has interpreters of its own, one of each in turns. The figure is the CPU time of the import. Both packages
have their bytecode, as installed ones have: the first round leaves it beside the sources and does not count.
TensorFlow 2 loads tf.estimator and Keras when they are first used. Classes of npu_shim inherit from theirs, so that
the star import loads them: the limit is TensorFlow with these parts and without npu_shim.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results  # noqa: E402

_SHIM = "import npu_shim"
_STAR = "from npu_shim.npu_init import *"
_TENSORFLOW = "import tensorflow as tf"
_PARTS = 'getattr(getattr(tf.compat.v1, "estimator", None), "Estimator", None); tf.compat.v1.keras.backend'

CASES = {  # what comes before, and what is timed
    "tensorflow_s": ("", _TENSORFLOW),
    "parts_s": (_TENSORFLOW, _PARTS),
    "npu_shim_s": ("", _SHIM),
    "npu_shim_after_tensorflow_s": (_TENSORFLOW, _SHIM),
    "npu_init_after_tensorflow_s": (_TENSORFLOW, _STAR),
    "npu_init_after_parts_s": (_TENSORFLOW + "; " + _PARTS, _STAR),
}
QUICK = ("npu_shim_s", "npu_init_after_parts_s")


def seconds(before: str, timed: str) -> float:
    """CPU seconds of a statement in a new interpreter."""
    code = f"import time\n{before}\nbegin = time.process_time()\n{timed}\nprint(time.process_time() - begin)"
    environment = dict(
        os.environ,
        NPU_SHIM_FALLBACK="silent",
        TF_CPP_MIN_LOG_LEVEL="3",
        PYTHONDONTWRITEBYTECODE="",
        PYTHONPATH=os.pathsep.join(filter(None, (str(results.RESULTS.parent.parent), os.environ.get("PYTHONPATH")))),
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return float(done.stdout.split()[-1])


def measure(cases: Sequence[str], rounds: int) -> dict[str, float]:
    """The median of each case; a first round, which may compile, does not count where there are more."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name in cases:
            found[name].append(seconds(*CASES[name]))
    return {name: statistics.median(each[1:] or each) for name, each in found.items()}


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds, and what comes out times as long as TensorFlow alone, and with its parts."""
    head = (
        "TensorFlow",
        "import tensorflow",
        "its estimator and Keras",
        "npu_shim alone",
        "npu_shim after tensorflow",
        "npu_init after tensorflow",
        "npu_init after these parts",
        "ratio: with npu_shim",
        "with npu_init",
    )
    lines = []
    for row in rows:
        cells = [row["TensorFlow"]] + ["%.1f" % (row[name] * 1e3) if name in row else "-" for name in CASES]
        if "-" not in cells:
            limit = row["tensorflow_s"] + row["parts_s"]
            cells += [
                "%.3f" % (1 + row["npu_shim_after_tensorflow_s"] / row["tensorflow_s"]),
                "%.3f" % (1 + row["npu_init_after_parts_s"] / limit),
            ]
        lines.append(cells)
    return results.markdown(head, lines)


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""

    def measured(quick: bool) -> list[dict[str, Any]]:
        import tensorflow as tf

        return [dict(measure(QUICK, 1) if quick else measure(list(CASES), 8), TensorFlow=tf.__version__)]

    return results.run("imports", __doc__ or "", argv, "two of them, once: to see that it works", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
